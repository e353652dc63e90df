import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those with processes take longest: begun first, none of them runs alone at the end. */
const order = ['process', 'limits', 'examples', 'cli', 'lab', 'integration', 'worker'].map(
  (folder) => `/test/${folder}/`,
);

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}

/** Files that share their processes come last and all together, or they could not share them. */
function rank({ moduleId, project }: TestSpecification): number {
  if (!project.config.isolate) return order.length + 1;
  const place = order.findIndex((folder) => moduleId.includes(folder));
  return place < 0 ? order.length : place;
}
