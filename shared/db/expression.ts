/** Compiles conditions and changes to DynamoDB expressions. Fields get placeholders, because a field may have a reserved name. */
import type { Key } from "#shared/db/keys.ts";

export type Condition =
  | { readonly op: "exists" | "missing"; readonly field: string }
  | { readonly op: "=" | "<>" | "<" | "<=" | ">" | ">="; readonly field: string; readonly value: unknown }
  | { readonly op: "AND" | "OR"; readonly parts: readonly Condition[] };

export const exists = (field: string): Condition => ({ op: "exists", field });
export const missing = (field: string): Condition => ({ op: "missing", field });
export const equals = (field: string, value: unknown): Condition => ({ op: "=", field, value });
export const below = (field: string, value: unknown): Condition => ({ op: "<", field, value });
export const atMost = (field: string, value: unknown): Condition => ({ op: "<=", field, value });
export const above = (field: string, value: unknown): Condition => ({ op: ">", field, value });
export const all = (...parts: readonly Condition[]): Condition => ({ op: "AND", parts });
export const any = (...parts: readonly Condition[]): Condition => ({ op: "OR", parts });

export const absent: Condition = missing("pk");
export const present: Condition = exists("pk");

export interface Change {
  /** A field whose value is `undefined` stays as it is. */
  readonly set?: Readonly<Record<string, unknown>>;
  readonly remove?: readonly string[];
  /** Numbers to add to fields, or members to add to sets. */
  readonly add?: Readonly<Record<string, unknown>>;
  /** Members to remove from sets. DynamoDB removes the field if its set becomes empty. */
  readonly drop?: Readonly<Record<string, ReadonlySet<number>>>;
}

/** An item of the table. Parse it with its schema before you read a field. */
export type Item = Record<string, unknown>;

export type Write = (
  | { readonly put: Key & Item; readonly when?: Condition }
  | { readonly update: Key; readonly change: Change; readonly when?: Condition }
  | { readonly remove: Key; readonly when?: Condition }
  | { readonly check: Key; readonly when: Condition }
) & {
  /**
   * Makes the error of the request if the condition of this write fails, and each other failed write also has `orThrow`. `stored` is
   * undefined for a `check`, and if there is no item.
   */
  readonly orThrow?: (stored: Item | undefined) => Error;
};

export class Placeholders {
  readonly names: Record<string, string> = {};
  readonly values: Record<string, unknown> = {};
  #counter = 0;

  name(field: string): string {
    const placeholder = `#${field}`;
    this.names[placeholder] = field;
    return placeholder;
  }

  value(value: unknown): string {
    const placeholder = `:v${this.#counter++}`;
    this.values[placeholder] = value;
    return placeholder;
  }

  /** Leaves out a map without entries, because DynamoDB rejects empty maps. */
  attributes(): {
    ExpressionAttributeNames?: Record<string, string>;
    ExpressionAttributeValues?: Record<string, unknown>;
  } {
    return {
      ...(Object.keys(this.names).length > 0 && { ExpressionAttributeNames: this.names }),
      ...(Object.keys(this.values).length > 0 && { ExpressionAttributeValues: this.values }),
    };
  }
}

export function compileCondition(condition: Condition, into: Placeholders): string {
  switch (condition.op) {
    case "exists":
      return `attribute_exists(${into.name(condition.field)})`;
    case "missing":
      return `attribute_not_exists(${into.name(condition.field)})`;
    case "AND":
    case "OR": {
      const [first, ...more] = condition.parts;
      // DynamoDB rejects redundant parentheses.
      if (first !== undefined && more.length === 0) return compileCondition(first, into);
      return condition.parts.map((part) => `(${compileCondition(part, into)})`).join(` ${condition.op} `);
    }
    default:
      return `${into.name(condition.field)} ${condition.op} ${into.value(condition.value)}`;
  }
}

export function compileChange(change: Change, into: Placeholders): string {
  const values = (fields: Readonly<Record<string, unknown>> = {}, between = " "): string[] =>
    Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([field, value]) => `${into.name(field)}${between}${into.value(value)}`);
  const clauses = {
    SET: values(change.set, " = "),
    REMOVE: (change.remove ?? []).map((field) => into.name(field)),
    ADD: values(change.add),
    DELETE: values(change.drop),
  };
  return Object.entries(clauses)
    .flatMap(([verb, parts]) => (parts.length > 0 ? [`${verb} ${parts.join(", ")}`] : []))
    .join(" ");
}
