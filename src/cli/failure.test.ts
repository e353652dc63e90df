import { CommanderError } from 'commander';
import { describe, expect, it } from 'vitest';
import { SluiceError } from '../domain/errors.js';
import { CliError, describeFailure, exitCodeOf } from './failure.js';

describe('what a person sees when a command fails', () => {
  it('a refusal with the fields it is about', () => {
    const errors = [{ path: '/priority', message: 'must be one of high, medium, low' }];
    const refusal = new SluiceError('invalid_request', 'The request is not valid', { errors });
    expect(describeFailure(refusal, false)).toBe(
      'The request is not valid\n  /priority must be one of high, medium, low',
    );
  });

  it('what to do next, where that is known', () => {
    expect(describeFailure(new SluiceError('unauthorized', 'No'), false)).toContain(
      'SLUICE_API_KEY',
    );
    const noServer = new SluiceError('unavailable', 'Away', { cause: new Error('refused') });
    expect(describeFailure(noServer, false)).toContain('"sluice serve"');
    const noPostgres = new SluiceError('unavailable', 'Postgres is away');
    expect(describeFailure(noPostgres, false)).not.toContain('sluice serve');
    const later = new SluiceError('refused', 'Full', { retryAfterSeconds: 7 });
    expect(describeFailure(later, false)).toBe('Full\nTry again in 7 s.');
    expect(describeFailure(new CliError('No', { next: 'Do this.' }), false)).toBe('No\nDo this.');
  });

  it('the stack with its causes for whoever debugs', () => {
    const error = new Error('outer', { cause: new Error('inner') });
    expect(describeFailure(error, false)).toBe('outer');
    expect(describeFailure(error, true)).toMatch(/Error: outer\n\s+at .*caused by Error: inner/s);
  });

  it('2 for a command that was not understood, 1 for one that did not work', () => {
    expect(exitCodeOf(new CommanderError(1, 'commander.unknownOption', 'no'))).toBe(2);
    expect(exitCodeOf(new CommanderError(0, 'commander.helpDisplayed', ''))).toBe(0);
    expect(exitCodeOf(new CliError('no', { exitCode: 2 }))).toBe(2);
    expect(exitCodeOf(new SluiceError('task_not_found', 'no'))).toBe(1);
  });
});
