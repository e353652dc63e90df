/** Rows, values and statements that drivers hang on an error. */
const telling = ['detail', 'where', 'hint', 'internalQuery', 'query', 'params'] as const;

/**
 * An error of Postgres without what it was about: it is logged as a whole, by whatever logger, and
 * the row that broke a constraint holds what its owner would not want there. Code, table, column and
 * constraint stay.
 */
export function withoutValues(error: unknown): unknown {
  if (!isPostgresError(error)) return error;
  for (const member of telling) Reflect.deleteProperty(error, member);
  const message = maskedMessage(error);
  if (message !== error.message) {
    const stack = error.stack?.replace(error.message, () => message);
    error.message = message;
    if (stack !== undefined) error.stack = stack;
  }
  return error;
}

/** `invalid input syntax for type integer: "…"`: the messages of this class quote the value. */
function maskedMessage({ code, message }: PostgresError): string {
  return code.startsWith('22') ? message.replace(/"(?:[^]*)"/, '"…"') : message;
}

type PostgresError = Error & { code: string };

function isPostgresError(error: unknown): error is PostgresError {
  return (
    error instanceof Error &&
    'severity' in error &&
    'code' in error &&
    typeof error.code === 'string'
  );
}
