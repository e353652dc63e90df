import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startChatService } from '../../examples/chat-service.js';
import { Sluice, type ListedTask } from '../../src/index.js';
import { createDataFolder } from '../support/pglite.js';
import { runExample, type ExampleOptions } from './run-example.js';

describe('examples', () => {
  let folder: string;
  let dataDir: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-examples-'));
    dataDir = join(folder, '.sluice');
    createDataFolder(dataDir);
  });
  afterAll(() => rm(folder, { recursive: true }));

  /** What it printed. */
  async function run(name: string, options: ExampleOptions = {}): Promise<readonly string[]> {
    const example = runExample(name, { ...options, cwd: folder });
    expect(await example.exited).toBe(0);
    return example.lines;
  }

  /** What it left behind. */
  async function look<Answer>(at: (sluice: Sluice) => Promise<Answer>): Promise<Answer> {
    await using sluice = await Sluice.open({ dataDir });
    return await at(sluice);
  }

  it('quickstart.ts runs a task in its own process', async () => {
    expect(await run('quickstart.ts')).toEqual(['4 words']);
  });

  it('R-OB2: tracing.ts prints the spans of a task as the page shows them', async () => {
    const page = await readFile(join(import.meta.dirname, '../../docs/tracing.md'), 'utf8');
    const [, shown = ''] = /```text\n([^]*?)\n```/.exec(page) ?? [];
    expect((await run('tracing.ts')).join('\n')).toBe(shown);
  });

  it('R-WO11: llm-summarizer.ts gets all its summaries from a service that pushes back', async () => {
    await using service = await startChatService({
      requestsPerSecond: 4,
      failEvery: 5,
      maxPromptTokens: 1_000,
    });
    const model = 'stand-in';
    const sections = Array.from({ length: 15 }, (_, index) => `## ${index}\n\nOn ${index}.\n`);
    const tooLong = `## Too long\n\n${'word '.repeat(1_000)}\n`;
    await writeFile(join(folder, 'document.md'), `# A title\n\n${sections.join('')}${tooLong}`);

    const env = { OPENAI_BASE_URL: service.url, OPENAI_API_KEY: 'key', OPENAI_MODEL: model };
    const lines = await run('llm-summarizer.ts', { args: ['document.md'], env });
    const tasks = await look(
      async ({ api }) => (await api.listTasks({ queue: model }, { include: ['result'] })).items,
    );

    const { counts } = service;
    expect(counts).toMatchObject({ answered: 15, refused: 1, failed: 3 });
    expect(counts.rateLimited).toBeGreaterThan(0);
    const completed = tasks.filter(({ status }) => status === 'completed');
    expect(completed).toHaveLength(15);
    expect(completed.map(({ result }) => result)).toContain('7 On 7. …');
    // Every 500 cost a retry, and no 429 did.
    expect(sum(tasks, ({ retryCount }) => retryCount)).toBe(counts.failed);
    expect(sum(tasks, ({ attempt }) => attempt)).toBe(16 + counts.failed + counts.rateLimited);
    expect(sum(completed, ({ usage }) => usage?.tokens ?? 0)).toBe(counts.tokens);
    const [refused] = tasks.filter(({ status }) => status !== 'completed');
    expect(refused).toMatchObject({
      status: 'dead_letter',
      retryCount: 0,
      error: { code: 'HTTP_400', message: expect.stringContaining('400') as string },
    });
    expect(lines.filter((line) => line.includes('answered 429'))).toHaveLength(counts.rateLimited);
    expect(lines).toContainEqual(expect.stringMatching(/^16\/16 /));
  });

  it('R-WO11: gpu-and-cpu.ts runs on the GPU what needs one, and the rest on both', async () => {
    await run('gpu-and-cpu.ts');
    const { tasks, withGpu } = await look(async ({ api }) => {
      const workers = (await api.listWorkers()).items;
      const gpus = workers.filter(({ capabilities }) => capabilities.includes('gpu'));
      const tasks = (await api.listTasks({})).items;
      return { tasks, withGpu: new Set(gpus.map(({ workerId }) => workerId)) };
    });

    const ranWithGpu = (type: string) =>
      tasks
        .filter(({ taskType, status }) => taskType === type && status === 'completed')
        .map(({ assignedWorkerId }) => assignedWorkerId !== null && withGpu.has(assignedWorkerId));
    expect(withGpu.size).toBe(1);
    expect(ranWithGpu('embed')).toEqual(Array.from({ length: 6 }, () => true));
    expect(ranWithGpu('thumbnail')).toHaveLength(20);
    expect(new Set(ranWithGpu('thumbnail'))).toEqual(new Set([true, false]));
  });

  it('R-WO2: workflow.ts halts at a step that fails, and goes on when it is replayed', async () => {
    const lines = await run('workflow.ts');
    expect(lines).toEqual([
      'fetch:     completed',
      'summarise: dead_letter, the model is switched off',
      expect.stringMatching(/^publish: {3}waits, An earlier task of workflow /),
      'replayed',
      'summarise: To be or not …',
      'publish:   published: To be or not …',
    ]);

    const steps = ['fetch-page', 'summarize-page', 'publish-summary'];
    const all = await look(async ({ api }) => (await api.listTasks({})).items);
    const tasks = all.filter(({ workflowId }) => workflowId !== null);
    const inOrder = tasks.toSorted((a, b) => startOf(a) - startOf(b));
    expect(inOrder.map(({ taskType }) => taskType)).toEqual(steps);
    const overlaps = inOrder.filter((task, index) => startOf(task) < endOf(inOrder[index - 1]));
    expect(overlaps).toEqual([]);
  });
});

function sum(tasks: readonly ListedTask[], of: (task: ListedTask) => number): number {
  return tasks.reduce((total, task) => total + of(task), 0);
}

function startOf({ startedAt }: ListedTask): number {
  return startedAt?.getTime() ?? NaN;
}

function endOf(task: ListedTask | undefined): number {
  return task?.completedAt?.getTime() ?? -Infinity;
}
