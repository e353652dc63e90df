import { describe, expect, it } from 'vitest';
import { countTokens } from './count-tokens.js';

const usage = (names: Record<string, unknown>, provider = 'openai') => ({
  'gen_ai.provider.name': provider,
  ...Object.fromEntries(
    Object.entries(names).map(([name, value]) => [`gen_ai.usage.${name}`, value as number]),
  ),
});

describe('the tokens that a span tells of', () => {
  it.each([
    ['input and output', usage({ input_tokens: 10, output_tokens: 5 }), 15],
    ['input alone, as of embeddings', usage({ input_tokens: 10 }), 10],
    ['nothing', { 'gen_ai.request.model': 'gpt-4o' }, null],
    ['what is no number', usage({ input_tokens: 'many', output_tokens: -1 }), null],
    [
      'a cache inside the input, by the conventions',
      usage({ input_tokens: 10, output_tokens: 5, 'cache_read.input_tokens': 8 }, 'anthropic'),
      15,
    ],
    [
      "a cache inside OpenAI's input",
      usage({ input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 8 }),
      15,
    ],
    [
      "a cache beside Anthropic's input",
      usage(
        {
          ...{ input_tokens: 10, output_tokens: 5 },
          ...{ cache_read_input_tokens: 8, cache_creation_input_tokens: 2 },
        },
        'anthropic',
      ),
      25,
    ],
    [
      'a cache that is more than the input',
      usage({ input_tokens: 1, output_tokens: 5, cache_read_input_tokens: 80 }, 'aws.bedrock'),
      86,
    ],
    [
      'the older name of a provider',
      {
        'gen_ai.system': 'Anthropic',
        'gen_ai.usage.input_tokens': 1,
        'gen_ai.usage.cache_read_input_tokens': 1,
      },
      2,
    ],
  ])('R-OB2: counts %s', (_, attributes, tokens) => {
    expect(countTokens(attributes)).toBe(tokens);
  });
});
