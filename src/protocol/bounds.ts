/** What one call may carry. A setting may lower the byte sizes, never raise what the wire names. */
export const bounds = {
  taskBytes: 256 * 1024,
  resultBytes: 1024 * 1024,
  requestBytes: 16 * 1024 * 1024,
  /** An answer with many tasks ends with the first task that takes it past this. */
  answerBytes: 8 * 1024 * 1024,
  /** Tasks in the answer to one poll. */
  pollTasks: 1_000,
  /** JSON.stringify and Postgres recurse: far deeper than this either runs out of stack. */
  jsonDepth: 200,
  batchSize: 5_000,
  /** Tasks that a heartbeat names because their results did not arrive. */
  undeliveredTasks: 10_000,
  pageSize: 1_000,
  /** Tasks that one call of a bulk action changes. */
  bulkTasks: 10_000,
  /** Of a text that is looked for in parameters. */
  searchedTextLength: 100,
  /** A wait longer than a minute would meet the time-out of a proxy. */
  waitSeconds: 60,
  /** Tasks that one worker may run at once. */
  capacity: 100_000,
  /** Of the task types, queues and capabilities that a worker registers with, together. */
  workerNamesBytes: 64 * 1024,
  nameLength: 200,
  textLength: 500,
  /** Of one attempt: a day. */
  timeoutSeconds: 86_400,
  maxRetries: 100,
  /** Of a task type, without its schema and its retry policy: servers keep 10,000 of them in memory. */
  taskDefaultsBytes: 2 * 1024,
  /** Of a task type's input, as JSON Schema. */
  inputSchemaBytes: 16 * 1024,
  retryPolicyBytes: 1024,
  /** What is kept of a failure's message. */
  messageLength: 10_000,
  /** Of where a handler threw, with its causes. */
  stackBytes: 8 * 1024,
} as const;
