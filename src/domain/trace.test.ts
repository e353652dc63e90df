import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TaskId } from './ids.js';
import { checkedTraceparent, traceFromText, traceToText } from './trace.js';

const taskId = '0197f0c4-8a3b-7c21-9d55-3f0f5a1c2b3d' as TaskId;
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe('the trace of a task', () => {
  it('R-OB8: is its own id when the submit gave none', () => {
    expect(traceFromText(traceToText({}), taskId)).toEqual({
      traceId: '0197f0c48a3b7c219d553f0f5a1c2b3d',
      traceparent: null,
    });
  });

  it('R-OB8: keeps a traceparent whole, and names its trace', () => {
    expect(traceFromText(traceToText({ traceparent }), taskId)).toEqual({
      traceId: '0af7651916cd43dd8448eb211c80319c',
      traceparent,
    });
  });

  it('R-OB8: answers the trace id that was given, whatever it looks like', () => {
    const looksLikeOne = fc.constantFrom(traceparent, `${traceparent} `, `${traceparent} x`, 'x');
    const traceId = fc.oneof(fc.string({ minLength: 1 }), looksLikeOne);
    const given = fc.option(fc.constant(traceparent), { nil: undefined });
    fc.assert(
      fc.property(traceId, given, (text, parent) => {
        const kept = traceFromText(traceToText({ traceId: text, traceparent: parent }), taskId);
        expect(kept.traceId).toBe(text);
        if (parent !== undefined) expect(kept.traceparent).toBe(parent);
      }),
    );
  });

  it.each([
    ['as it is', traceparent, traceparent],
    [
      'with flags that are not known',
      `${traceparent.slice(0, -2)}ff`,
      `${traceparent.slice(0, -2)}ff`,
    ],
    ['of a later version', `01${traceparent.slice(2)}-more`, traceparent],
    ['of version 00 and longer', `${traceparent}-more`, null],
    ['of version ff', `ff${traceparent.slice(2)}`, null],
    ['with capital letters', traceparent.toUpperCase(), null],
    ['without a trace', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`, null],
    ['without a span', `00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01`, null],
    ['empty', '', null],
    ['with a line break', `${traceparent}\n`, null],
  ])('reads a traceparent %s', (_, text, read) => {
    expect(checkedTraceparent(text)).toBe(read);
  });
});
