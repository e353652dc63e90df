/** For how many days ahead partitions are there: what tests of the store ask for, and an engine. */
export const daysAhead = { store: 2, engine: 7 } as const;

/** Whose tests begin with it. */
export type Prepared = keyof typeof daysAhead;
