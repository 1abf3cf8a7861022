/** Reads the arguments of a command, prints its usage or its target, and sets its exit code. */
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import * as z from "zod/mini";
import { messageOf } from "./error.ts";

/** Reports arguments that a command does not accept. */
export class WrongUsage extends Error {}

/**
 * Returns the values of the options. If the arguments contain `--help`, it prints the usage and ends the process.
 *
 * @param usage begins with the command, for example `npm run bench -- [options]`
 * @throws WrongUsage with one line, if an argument is unknown or lacks its value
 */
export function optionsOf<const T extends ParseArgsOptionsConfig>(args: readonly string[], options: T, usage: string) {
  answerHelp(args, usage);
  try {
    const { values, tokens } = parseArgs({ args: [...args], options, tokens: true });
    refuseRepeated(tokens, options);
    return values;
  } catch (error) {
    throw wrongArgument(error, usage);
  }
}

/** Does the same as `optionsOf`, for a command that also accepts positional arguments. */
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

/** Throws an error if an option that takes one value occurs twice. Node.js would use the last value, and an operator may mean the first. */
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

/** The exit codes of all commands. A command may have further codes for interrupted work, which its usage then names. */
export const exitCodes = { done: 0, failed: 1, wrongUsage: 2 } as const;

/**
 * Runs a command and sets the exit code of the process. The code is the result of `main`. If `main` has no result, it is the code that
 * `main` has set in `process.exitCode`, or 0 if `main` has set none. If `main` throws, the code is 2 for wrong usage and 1 for any other
 * error, and the message goes to stderr.
 */
export async function runCommand(main: () => Promise<number | undefined>): Promise<void> {
  try {
    process.exitCode = (await main()) ?? process.exitCode ?? exitCodes.done;
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = error instanceof WrongUsage ? exitCodes.wrongUsage : exitCodes.failed;
  }
}

/**
 * Returns the options of a command that has no positional arguments. If the options are wrong, it prints one line and ends the process with
 * exit code 2.
 */
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
  // Node.js adds a hint to the reason: how to pass a positional argument that begins with a dash, or that the command takes no positional
  // arguments. No command needs the first hint, and the usage already shows the second. So both are removed.
  const reason = message.replace(
    /\. To specify a positional argument .*| This command does not take positional arguments$/s,
    "",
  );
  const [command] = /^npm (?:start|run (?:--silent )?\S+)/.exec(usage) ?? [usage];
  return new WrongUsage(`${reason.replace(/\.$/, "")}: see ${command} -- --help`);
}

/**
 * Checks the values of options with the schema and returns the result.
 *
 * @throws WrongUsage with one line for each wrong or missing option, and the usage
 */
export function checked<S extends z.ZodMiniType>(
  schema: S,
  values: Readonly<Record<string, unknown>>,
  usage: string,
): z.output<S> {
  const result = z.safeParse(schema, values);
  if (result.success) return result.data;
  const faults = result.error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") return issue.keys.map((key) => `--${key}: this command has no such option`);
    const name = issue.path.join(".");
    return [`--${name}: ${values[name] === undefined ? "is required" : issue.message}`];
  });
  throw new WrongUsage(`${faults.join("\n")}\nusage: ${usage}`);
}

/**
 * Reads the command-line options that the schema names, and returns their checked values. Each option takes a value. If an option or a value
 * is wrong, the function prints the reason and ends the process with exit code 2.
 */
export function checkedOrExit<S extends z.ZodMiniObject>(schema: S, usage: string): z.output<S> {
  try {
    return checked(schema, optionsOf(process.argv.slice(2), texts(Object.keys(schema.shape)), usage), usage);
  } catch (error) {
    console.error(messageOf(error));
    process.exit(exitCodes.wrongUsage);
  }
}

/** Returns the error for words that are no command. If there are no words, its message is only the usage. */
export function unknownCommand(words: readonly string[], usage: string): WrongUsage {
  const given = words.join(" ");
  return new WrongUsage(`${given === "" ? "" : `${given}: unknown command\n`}usage: ${usage}`);
}

/** Returns the definitions with which `parseArgs` accepts options with these names. Each option needs a value. */
export const texts = (names: readonly string[]): Record<string, { readonly type: "string" }> =>
  Object.fromEntries(names.map((name) => [name, { type: "string" as const }]));

/** Prints a command's target on stderr, so that an operator notices a wrong target, such as a local service that runs by chance. */
export const nameTarget = (target: string): void => console.error(`target: ${target}`);
