import type { JsonValue } from '../domain/json.js';

/** What is left of a value that went through JSON: a date is a text, nothing at all is null. */
export type Serialized<T> = unknown extends T
  ? JsonValue
  : T extends JsonValue
    ? T
    : T extends { toJSON(): infer Json }
      ? Serialized<Json>
      : T extends readonly (infer Item)[]
        ? Serialized<Item>[]
        : T extends object
          ? { [Key in keyof T]: SerializedMember<T[Key]> }
          : null;

/** A member that is undefined is not written. */
type SerializedMember<T> = T extends undefined ? undefined : Serialized<T>;
