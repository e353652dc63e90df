import { describe, expect, it } from 'vitest';
import { attemptErrorCodes, isRetriable } from './attempt-error.js';

describe('isRetriable', () => {
  it('R-RE4: as the attempt says, but never after bad input or a result too large', () => {
    const { invalidInput, resultTooLarge } = attemptErrorCodes;
    for (const code of [...Object.values(attemptErrorCodes), 'MODEL_SAID_NO']) {
      const hopeless = code === invalidInput || code === resultTooLarge;
      const error = { code, message: 'it went wrong' };
      expect(isRetriable({ ...error, retriable: true })).toBe(!hopeless);
      expect(isRetriable({ ...error, retriable: false })).toBe(false);
    }
  });
});
