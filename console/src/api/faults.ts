/** Turns the faults in a response into texts for users. */

/** A fault in a field of a request. `field` is the name of a member of the body or of a parameter, for example `polygon`. */
export interface FieldFault {
  readonly field: string;
  /** What is wrong with the field. The text continues the field's name, for example `must be at most 90.` */
  readonly text: string;
}

/** A fault as the service returns it. */
interface Fault {
  readonly pointer?: string | undefined;
  readonly parameter?: string | undefined;
  readonly message: string;
}

/** Thrown if the page itself finds a fault in a field. The page then sends no request. */
export class FieldError extends Error {
  readonly faults: readonly FieldFault[];

  constructor(field: string, text: string) {
    super(text);
    this.name = "FieldError";
    this.faults = [{ field, text }];
  }
}

/**
 * Returns the faults in a problem body, each for a whole field such as `polygon`. If several values in the field have the same fault, for
 * example `/polygon/0/1` and `/polygon/3/0`, returns only the message about the first value.
 */
export function faultsIn(problem: { readonly errors?: readonly Fault[] } | undefined): FieldFault[] {
  const faults = new Map<string, FieldFault>();
  for (const { pointer, parameter, message } of problem?.errors ?? []) {
    const field = parameter ?? pointer?.split("/")[1] ?? "";
    const text = sentence(message);
    const key = `${field} ${text.replace(/, and is .*$/, "")}`;
    faults.set(key, faults.get(key) ?? { field, text });
  }
  return [...faults.values()];
}

/** Ends a message of the service, such as `must be at most 90`, with a full stop. */
export const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);
