/** Turns the faults in a response into texts for users. The service's own texts are for developers. */
/** What is wrong with a field of a request. `field` is the name of a member of the body or of a parameter, for example `polygon`. */
export interface FieldFault {
  readonly field: string;
  /** Continues the name of the field, for example `must be at most 90.` */
  readonly text: string;
}

/** A fault as the service returns it. */
interface Fault {
  readonly pointer?: string | undefined;
  readonly parameter?: string | undefined;
  readonly message: string;
}

/** The page itself has found the faults, so no request was sent. */
export class FieldError extends Error {
  readonly faults: readonly FieldFault[];

  constructor(field: string, text: string) {
    super(text);
    this.name = "FieldError";
    this.faults = [{ field, text }];
  }
}

/** Returns each fault once. A fault in a part of a field, such as `/polygon/0/1`, belongs to the whole field. */
export function faultsIn(problem: { readonly errors?: readonly Fault[] } | undefined): FieldFault[] {
  const faults = new Map<string, FieldFault>();
  for (const { pointer, parameter, message } of problem?.errors ?? []) {
    const field = parameter ?? pointer?.split("/")[1] ?? "";
    const text = plainText(message);
    faults.set(`${field} ${text}`, { field, text });
  }
  return [...faults.values()];
}

const bounds: Readonly<Record<string, string>> = {
  ">=": "at least",
  "<=": "at most",
  ">": "more than",
  "<": "less than",
};

/** Rewrites the messages of the library that checks the requests (zod). Returns other messages unchanged. */
export function plainText(message: string): string {
  const [, verb, sign = "", amount, unit] =
    /^Too (?:small|big): expected \S+ to (have|be) ([<>]=?)(\S+)(?: (\w+))?$/.exec(message) ?? [];
  const bound = bounds[sign];
  if (bound === undefined) return /^Invalid (?:input|option)\b/.test(message) ? "is not valid." : sentence(message);
  const noun = amount === "1" ? unit?.replace(/s$/, "") : unit;
  return `must ${verb} ${bound} ${amount}${noun === undefined ? "" : ` ${noun}`}.`;
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);
