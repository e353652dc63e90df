import { findMeant } from '../domain/did-you-mean.js';
import { SluiceError } from '../domain/errors.js';
import type { QueueApi, QueueView } from '../protocol/queues-api.js';
import { CliError } from './failure.js';
import { everyPage } from './pages.js';

/** Refuses a name that no queue has: a typing error would pause nothing, and say that it did. */
export async function existingQueue(api: QueueApi, name: string): Promise<QueueView> {
  try {
    return await api.getQueue(name);
  } catch (error) {
    if (!(error instanceof SluiceError) || error.code !== 'queue_not_found') throw error;
    const queues = await everyPage((page) => api.listQueues(page));
    const meant = findMeant(
      name,
      queues.map((queue) => queue.name),
    );
    throw new CliError(error.message, {
      next:
        meant === null
          ? '"sluice queues" lists those there are; the first task of a queue makes it.'
          : `Did you mean ${meant}?`,
      cause: error,
    });
  }
}
