/**
 * Under which metrics sum up queues and task types that have no series of their own. No queue and no task type can be
 * called so: names have no brackets.
 */
export const otherNames = '(other)';
