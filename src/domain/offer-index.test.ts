import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Lane } from './lane.js';
import { OfferIndex } from './offer-index.js';
import { canDo, offerSets, type Offer } from './offer.js';

const names = fc.constantFrom('a', 'b', 'c', 'd');
const lists = fc.array(names, { maxLength: 3 });
const offers: fc.Arbitrary<Offer> = fc.record({
  taskTypes: fc.option(lists),
  queues: fc.option(lists),
  capabilities: fc.option(lists),
});
const lanes: fc.Arbitrary<Lane> = fc.record({
  queue: names,
  taskType: names,
  capabilities: lists,
});

function indexOf(all: readonly Offer[]): OfferIndex {
  const index = new OfferIndex();
  for (const [n, offer] of all.entries()) Array.from(index.add(String(n), offer));
  return index;
}

const keysOf = (all: readonly Offer[], isOne: (offer: Offer) => boolean) =>
  all.flatMap((offer, n) => (isOne(offer) ? [String(n)] : []));

it('R-HA4: finds for a lane those that a comparison with each would find, each once', () => {
  fc.assert(
    fc.property(fc.array(offers, { maxLength: 8 }), lanes, (all, lane) => {
      const able = [...indexOf(all).ableTo(lane)];
      expect(able.toSorted()).toEqual(keysOf(all, (offer) => canDo(offerSets(offer), lane)));
    }),
  );
});

it('R-AD5: finds who shares in the work of an offer', () => {
  const share = (some: readonly string[] | null, others: readonly string[] | null) =>
    some === null || others === null || some.some((each) => others.includes(each));
  fc.assert(
    fc.property(fc.array(offers, { maxLength: 8 }), offers, (all, asked) => {
      const expected = keysOf(
        all,
        (other) =>
          share(asked.taskTypes, other.taskTypes) &&
          share(asked.queues, other.queues) &&
          (asked.capabilities ?? []).every((each) => other.capabilities?.includes(each) ?? true),
      );
      expect([...indexOf(all).sharing(asked)].toSorted()).toEqual(expected);
    }),
  );
});

it('R-HA4: an offer with a thousand names is added in small steps', () => {
  const taskTypes = Array.from({ length: 1_000 }, (_, n) => `t${n}`);
  const steps = [...new OfferIndex().add('one', { taskTypes, queues: null, capabilities: null })];
  expect(steps.length).toBeGreaterThan(1);
});
