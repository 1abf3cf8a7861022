/** Reads the arguments of a command, prints its usage or its target, and sets its exit code. */
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import * as z from "zod/mini";
import { messageOf } from "./error.ts";

/** The error for arguments that a command does not accept. */
export class WrongUsage extends Error {}

/**
 * Parses the arguments. With `--help`, prints `usage`, which begins with the command, and ends the process. If the arguments are wrong,
 * throws WrongUsage with one line that names the fault and the command.
 */
export function argumentsOf<const T extends ParseArgsOptionsConfig>(
  options: T,
  usage: string,
  args: readonly string[] = process.argv.slice(2),
) {
  answerHelp(args, usage);
  try {
    const { tokens, ...parsed } = parseArgs({ args: [...args], options, allowPositionals: true, tokens: true });
    refuseRepeated(tokens, options);
    return parsed;
  } catch (error) {
    throw wrongArgument(error, usage);
  }
}

/** Parses the arguments like `argumentsOf`, for a command that accepts no positional arguments. */
export function optionsOf<const T extends ParseArgsOptionsConfig>(args: readonly string[], options: T, usage: string) {
  const { values, positionals } = argumentsOf(options, usage, args);
  const [unexpected] = positionals;
  if (unexpected !== undefined) throw wrongArgument(`Unexpected argument '${unexpected}'`, usage);
  return values;
}

/** Throws if an option without `multiple` occurs twice. Node.js would use the last value, and an operator may mean the first. */
function refuseRepeated(
  tokens: readonly { readonly kind: string; readonly name?: string }[],
  options: ParseArgsOptionsConfig,
): void {
  const seen = new Set<string>();
  for (const { kind, name = "" } of tokens) {
    if (kind !== "option" || options[name]?.multiple === true) continue;
    if (seen.has(name)) throw new Error(`Option '--${name}' occurs twice`);
    seen.add(name);
  }
}

/** A command may have further codes for interrupted work, which its usage then names. */
export const exitCodes = { done: 0, failed: 1, wrongUsage: 2 } as const;

/**
 * Sets the exit code: the result of `main`, otherwise `process.exitCode`, otherwise 0. If `main` throws, the exit code is 2 for WrongUsage
 * and 1 for any other error, and the message goes to stderr.
 */
export async function runCommand(main: () => Promise<number | undefined>): Promise<void> {
  try {
    process.exitCode = (await main()) ?? process.exitCode ?? exitCodes.done;
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = error instanceof WrongUsage ? exitCodes.wrongUsage : exitCodes.failed;
  }
}

/** Returns the options of a command without positional arguments. If one is wrong, it prints a line and ends the process with code 2. */
export function optionsOrExit<const T extends ParseArgsOptionsConfig>(options: T, usage: string) {
  try {
    return optionsOf(process.argv.slice(2), options, usage);
  } catch (error) {
    console.error(messageOf(error));
    process.exit(exitCodes.wrongUsage);
  }
}

export function answerHelp(args: readonly string[], usage: string): void {
  if (!args.includes("--help")) return;
  console.log(`usage: ${usage}`);
  process.exit(0);
}

/** Returns an error whose message is one line: the reason, and the command that prints the usage. */
function wrongArgument(error: unknown, usage: string): WrongUsage {
  const message = messageOf(error);
  // Node.js adds a hint about positional arguments that begin with a hyphen, which no command needs.
  const reason = message.replace(/\. To specify a positional argument .*$/s, "");
  const [command] = /^npm (?:start|run (?:--silent )?\S+)/.exec(usage) ?? [usage];
  return new WrongUsage(`${reason.replace(/\.$/, "")}: see ${command} -- --help`);
}

/** Throws WrongUsage with one line for each wrong or missing option, and the usage. */
export function checked<S extends z.ZodMiniType>(
  schema: S,
  values: Readonly<Record<string, unknown>>,
  usage: string,
): z.output<S> {
  const result = z.safeParse(schema, values);
  if (result.success) return result.data;
  const faults = result.error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") return issue.keys.map((key) => `--${key}: this command has no such option`);
    const name = String(issue.path[0]);
    return [`--${name}: ${values[name] === undefined ? "is required" : issue.message}`];
  });
  throw new WrongUsage(`${faults.join("\n")}\nusage: ${usage}`);
}

/** Returns the value in `commands` of the command that `words` name. Throws WrongUsage if there is no such command. */
export function commandNamed<T>(words: readonly string[], commands: Readonly<Record<string, T>>, usage: string): T {
  const name = words.join(" ");
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) throw unknownCommand(name, usage);
  return command;
}

/** Returns the error for a word that is no command. Without a word, its message is only the usage. */
export const unknownCommand = (name: string, usage: string): WrongUsage =>
  new WrongUsage(`${name === "" ? "" : `${name}: unknown command\n`}usage: ${usage}`);

/**
 * Returns the options of a schema for `parseArgs`. An option that accepts `true` takes no value, and one that accepts a list may be
 * repeated.
 */
export function optionsIn(shape: Readonly<Record<string, z.ZodMiniType>>): ParseArgsOptionsConfig {
  const optionOf = (schema: z.ZodMiniType) => {
    const accepts = (value: unknown): boolean => z.safeParse(schema, value).success;
    return { type: accepts(true) ? "boolean" : "string", multiple: accepts([]) } as const;
  };
  return Object.fromEntries(Object.entries(shape).map(([name, schema]) => [name, optionOf(schema)]));
}

/** Reads the options of `schema`, for a command that accepts no positional arguments. */
export const inputOf = <Shape extends Readonly<Record<string, z.ZodMiniType>>>(
  schema: z.ZodMiniObject<Shape>,
  args: readonly string[],
  usage: string,
) => checked(schema, optionsOf(args, optionsIn(schema.shape), usage), usage);

/** Runs the command that the first argument names, with the other arguments. */
export const runNamed = (
  commands: Readonly<Record<string, (args: readonly string[]) => Promise<number>>>,
  usage: string,
): Promise<void> =>
  runCommand(async () => {
    const [name = "", ...args] = process.argv.slice(2);
    answerHelp([name], usage);
    return commandNamed([name], commands, usage)(args);
  });

/** Prints a command's target on stderr, so that an operator notices a wrong target, such as a local service that runs by chance. */
export const nameTarget = (target: string): void => console.error(`target: ${target}`);
