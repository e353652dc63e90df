import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Those that take longest: begun first, none of them runs alone at the end. The simulation computes all
 * the time, and those of processes wait meanwhile.
 */
const apart = ['lab/simulation', 'process/', 'lab/', 'examples/', 'integration/', 'cli/'];
const together = ['limits/', 'worker/', 'integration/', 'store/'];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}

/** Files that share their processes come last and all together, or they could not share them. */
function rank({ moduleId, project }: TestSpecification): number {
  const { isolate } = project.config;
  const folders = isolate ? apart : together;
  const place = folders.findIndex((folder) => moduleId.includes(`/test/${folder}`));
  return (isolate ? 0 : apart.length + 1) + (place < 0 ? folders.length : place);
}
