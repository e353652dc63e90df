import type { Attributes } from '@opentelemetry/api';

/**
 * Input and output of a call to a model, by the conventions for generative AI. Null when the span is none.
 *
 * By the conventions input includes what came from a cache, as in OpenAI's answers. Anthropic's API counts it beside the
 * input, and libraries that copy its fields into attributes do the same: they are known by the names of those fields.
 */
export function countTokens(attributes: Attributes): number | null {
  const number = (name: string) => tokensOf(attributes[`gen_ai.usage.${name}`]);
  const input = number('input_tokens');
  const output = number('output_tokens');
  if (input === null && output === null) return null;
  const besides =
    (number('cache_read_input_tokens') ?? 0) + (number('cache_creation_input_tokens') ?? 0);
  // More than the input can't be a part of it.
  const isBesides = isAnthropic(attributes) || besides > (input ?? 0);
  return (input ?? 0) + (output ?? 0) + (isBesides ? besides : 0);
}

function isAnthropic(attributes: Attributes): boolean {
  const provider = attributes['gen_ai.provider.name'] ?? attributes['gen_ai.system'];
  return typeof provider === 'string' && provider.toLowerCase() === 'anthropic';
}

function tokensOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
