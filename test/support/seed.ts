import fc from 'fast-check';

/**
 * What passed on a commit passes on it again: the seed of all properties is fixed. To look further,
 * SLUICE_TEST_SEED=random, or a number that a failing run has printed.
 */
const wished = process.env.SLUICE_TEST_SEED ?? '1';
if (wished !== 'random') fc.configureGlobal({ seed: Number(wished) });
