import { expect, it } from 'vitest';
import { hideSecrets, redacted } from './payload-log.js';

it('R-AD6: what is called like a secret is hidden, whatever it is, at any depth', () => {
  const value = {
    prompt: 'hello',
    max_token: 5,
    password: 'a',
    list: [{ apiKey: 'b', 'x-api-key': { c: 'd' } }],
    headers: { Authorization: 'Bearer e', 'Set-Cookie': ['f'] },
  };
  expect(redacted('/parameters', value, hideSecrets)).toEqual({
    prompt: 'hello',
    max_token: 5,
    password: '[hidden]',
    list: [{ apiKey: '[hidden]', 'x-api-key': '[hidden]' }],
    headers: { Authorization: '[hidden]', 'Set-Cookie': '[hidden]' },
  });
});

it('R-AD6: a hook of ones own is asked about every member, by its JSON pointer', () => {
  const asked: string[] = [];
  const value = redacted('/result', { 'a/b': [1, { '~': 2 }] }, (path, member) => {
    asked.push(path);
    return path.endsWith('/~0') ? 'gone' : member;
  });
  expect(value).toEqual({ 'a/b': [1, { '~': 'gone' }] });
  expect(asked).toEqual([
    '/result',
    '/result/a~1b',
    '/result/a~1b/0',
    '/result/a~1b/1',
    '/result/a~1b/1/~0',
  ]);
});
