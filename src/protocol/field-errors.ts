import type { TSchema } from 'typebox';
import type { TLocalizedValidationError as ValidationError } from 'typebox/error';
import type { FieldError } from '../domain/errors.js';
import { patternMeanings } from './pattern-meanings.js';
import { unknownField } from './unknown-field.js';

/** Nobody reads more of them at once. */
const maxTold = 20;
/** Of these, unknown ones are compared with the names that there are. A batch may have 5,000 tasks that are refused. */
const maxCompared = 5;
/** Longer than the path to any field that there is, with the longest names. */
const maxPathLength = 1_000;

const typeNames: Readonly<Record<string, string>> = {
  integer: 'a whole number',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  object: 'an object',
  array: 'an array',
  null: 'null',
};

/** One error for each field, in the words of whoever must correct it. */
export function toFieldErrors(
  schema: TSchema,
  errors: readonly ValidationError[],
  path: string,
): FieldError[] {
  const messages = new Map<string, string>();
  for (const error of likeliest(errors)) {
    if (messages.size >= maxTold) break;
    const known = messages.size < maxCompared ? knownNames(schema, error) : [];
    for (const [at, message] of describe(error, known)) {
      if (!messages.has(at)) messages.set(at, message);
    }
  }
  const told = [...messages].slice(0, maxTold);
  return told.map(([at, message]) => ({ path: `${path}${cutPath(at)}`, message }));
}

/** The answer must not grow with names that a caller invents. */
function cutPath(path: string): string {
  return path.length <= maxPathLength ? path : `${path.slice(0, maxPathLength)}…`;
}

/** `known`: the names that an unknown one is compared with. */
function describe(
  error: ValidationError,
  known: readonly string[],
): [path: string, message: string][] {
  const { instancePath } = error;
  switch (error.keyword) {
    case 'boolean':
      return [[instancePath, unknownField(lastName(instancePath), known)]];
    case 'type': {
      const types = [error.params.type].flat().map((type) => typeNames[type] ?? type);
      return [[instancePath, `must be ${types.join(' or ')}`]];
    }
    case 'required':
      return error.params.requiredProperties.map((name) => [
        `${instancePath}/${name}`,
        'is needed',
      ]);
    case 'enum':
      return [[instancePath, `must be one of ${error.params.allowedValues.join(', ')}`]];
    case 'pattern':
      return [[instancePath, patternMeanings.get(String(error.params.pattern)) ?? error.message]];
    case 'format':
      return [[instancePath, 'must be a time as RFC 3339 writes it, from 1970 to 9899']];
    case 'minProperties':
      return [[instancePath, `must name at least ${error.params.limit} field`]];
    // The fields themselves are told as `boolean`, the alternatives one by one.
    case 'additionalProperties':
    case 'anyOf':
      return [];
    default:
      return [[instancePath, error.message]];
  }
}

/** The names that stand beside an unknown one: of the object whose `additionalProperties` refused it. */
function knownNames(schema: TSchema, { schemaPath }: ValidationError): readonly string[] {
  const steps = schemaPath.split('/').slice(1, -1);
  const object = steps.reduce<unknown>(
    (part, step) => (part as Record<string, unknown> | undefined)?.[step],
    schema,
  );
  return namesIn((object as { properties?: object } | undefined)?.properties ?? noProperties);
}

const noProperties = {};
const namesOf = new WeakMap<object, readonly string[]>();

/** The same list each time: it is prepared once for all comparisons. */
function namesIn(properties: object): readonly string[] {
  const known = namesOf.get(properties) ?? Object.keys(properties);
  namesOf.set(properties, known);
  return known;
}

function lastName(pointer: string): string {
  const segment = pointer.slice(pointer.lastIndexOf('/') + 1);
  return segment.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** An alternative of another type was less likely meant than one with many wrong fields. */
const otherType = 100;

/**
 * Of the alternatives of a union, the one that was probably meant: the one whose own shape fits
 * best. Without this a misspelt field would be told as a missing one of every alternative.
 */
function likeliest(errors: readonly ValidationError[]): readonly ValidationError[] {
  return unionsIn(errors).reduce((kept, { schemaPath, instancePath }) => {
    const prefix = `${schemaPath}/anyOf/`;
    const inside = kept.filter(
      (error) => error.schemaPath.startsWith(prefix) && isWithin(error, instancePath),
    );
    const branchOf = (error: ValidationError): string =>
      error.schemaPath.slice(prefix.length).split('/', 1)[0] ?? '';
    const misfit = (branch: string): number =>
      inside
        .filter((error) => error.schemaPath === `${prefix}${branch}`)
        .reduce((sum, { keyword }) => sum + (keyword === 'type' ? otherType : 1), 0);
    const [best] = [...new Set(inside.map(branchOf))].sort((a, b) => misfit(a) - misfit(b));
    return kept.filter((error) => !inside.includes(error) || branchOf(error) === best);
  }, errors);
}

/** A union says so after its alternatives: with very many errors that of the whole body is cut off. */
function unionsIn(
  errors: readonly ValidationError[],
): Pick<ValidationError, 'schemaPath' | 'instancePath'>[] {
  const unions = errors.filter(({ keyword }) => keyword === 'anyOf');
  const whole = errors.some(({ schemaPath }) => schemaPath.startsWith('#/anyOf/'));
  return whole ? [...unions, { schemaPath: '#', instancePath: '' }] : unions;
}

function isWithin({ instancePath }: ValidationError, path: string): boolean {
  return instancePath === path || instancePath.startsWith(`${path}/`);
}
