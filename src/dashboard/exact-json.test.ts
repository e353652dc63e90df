import { describe, expect, it } from 'vitest';
import { memberOf, parseExact, printExact } from './exact-json.js';

describe('JSON as it was written', () => {
  it.each([
    '{"id":12345678901234567890,"ratio":0.10000000000000000555,"tiny":1e-400}',
    '[]',
    '{}',
    '{"a":[1,[2,{"b":null}],"x\\"y, {z}: \\u00e9",true,false,-0.0]}',
    '"only text"',
  ])('keeps %s digit by digit', (text) => {
    const printed = printExact(parseExact(text));
    const flat = (json: string) => json.replace(/\n\s*/g, '').replaceAll('": ', '":');
    expect(flat(printed)).toBe(flat(text.replace('\\u00e9', 'é')));
  });

  it('finds members', () => {
    const tree = parseExact('{"a":{"b":9007199254740993}}');
    const inner = memberOf(tree, 'a');
    expect(inner && memberOf(inner, 'b')).toEqual({ kind: 'number', text: '9007199254740993' });
    expect(memberOf(tree, 'c')).toBeNull();
  });

  it('refuses what is no JSON', () => {
    expect(() => parseExact('{"a":}')).toThrow(SyntaxError);
  });
});
