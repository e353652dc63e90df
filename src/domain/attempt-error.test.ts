import { describe, expect, it } from 'vitest';
import { attemptErrorCodes, isRetriable } from './attempt-error.js';

describe('isRetriable', () => {
  it('R-RE4: as the attempt says, but never after bad or missing input or a result too large', () => {
    const { invalidInput, inputMissing, resultTooLarge } = attemptErrorCodes;
    const never: readonly string[] = [invalidInput, inputMissing, resultTooLarge];
    for (const code of [...Object.values(attemptErrorCodes), 'MODEL_SAID_NO']) {
      const hopeless = never.includes(code);
      const error = { code, message: 'it went wrong' };
      expect(isRetriable({ ...error, retriable: true })).toBe(!hopeless);
      expect(isRetriable({ ...error, retriable: false })).toBe(false);
    }
  });
});
