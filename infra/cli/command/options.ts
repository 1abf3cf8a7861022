/** Reads the arguments of a command, prints its usage or its target, and sets its exit code. */
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import * as z from "zod/mini";
import { messageOf } from "./error.ts";

/** The error for arguments that a command does not accept. */
export class WrongUsage extends Error {}

/** Parses the arguments. With `--help`, prints `usage`, which begins with the command, and ends the process. Throws WrongUsage. */
export function argumentsOf<const T extends ParseArgsOptionsConfig>(
  options: T,
  usage: string,
  args: readonly string[] = process.argv.slice(2),
) {
  if (args.includes("--help")) {
    console.log(`usage: ${usage}`);
    process.exit(0);
  }
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
  refuseOperands(positionals, usage);
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

/** The exit codes of all commands. A command may have further codes for interrupted work, which its usage then names. */
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

export function optionsOrExit<const T extends ParseArgsOptionsConfig>(options: T, usage: string) {
  try {
    return optionsOf(process.argv.slice(2), options, usage);
  } catch (error) {
    console.error(messageOf(error));
    process.exit(exitCodes.wrongUsage);
  }
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

/** Returns options for `parseArgs`. An option takes no value if its schema accepts `true`, and may be repeated if it accepts a list. */
export function optionsIn(shape: z.core.$ZodShape): ParseArgsOptionsConfig {
  const optionOf = (schema: z.core.$ZodType) => {
    const accepts = (value: unknown): boolean => z.safeParse(schema, value).success;
    return { type: accepts(true) ? "boolean" : "string", multiple: accepts([]) } as const;
  };
  return Object.fromEntries(Object.entries(shape).map(([name, schema]) => [name, optionOf(schema)]));
}

interface Command {
  readonly options: ParseArgsOptionsConfig;
  readonly run: (
    values: Readonly<Record<string, unknown>>,
    operands: readonly string[],
    usage: string,
  ) => Promise<number>;
}

/** Makes a command for `runCommands`. `operandName` is the name of the only operand, which must follow the name of the command. */
export const command = <S extends z.ZodMiniObject>(
  schema: S,
  work: (input: z.output<S>, operand: string) => Promise<number>,
  operandName?: string,
): Command => ({
  options: optionsIn(schema.shape),
  run: (values, operands, usage) => {
    const operand = operandName === undefined ? "" : operandIn(operands, operandName, usage);
    if (operandName === undefined) refuseOperands(operands, usage);
    return work(checked(schema, values, usage), operand);
  },
});

/** Runs the command that the first argument names. Its schema must refuse the options of other commands, because all are parsed alike. */
export const runCommands = (usage: string, commands: Readonly<Record<string, Command>>): Promise<void> =>
  runCommand(async () => {
    const options = Object.assign({}, ...Object.values(commands).map((one) => one.options));
    const { values, positionals } = argumentsOf(options, usage);
    const [name = "", ...operands] = positionals;
    const chosen = Object.hasOwn(commands, name) ? commands[name] : undefined;
    // Only the name is shown, because a later argument may be an access token.
    if (chosen === undefined) throw new WrongUsage(`${name === "" ? "" : `${name}: unknown command\n`}usage: ${usage}`);
    return chosen.run(values, operands, usage);
  });

/** Returns the only operand. Throws WrongUsage if there is none or more than one. */
export function operandIn([operand, ...more]: readonly string[], name: string, usage: string): string {
  if (operand === undefined) throw new WrongUsage(`${name}: is required\nusage: ${usage}`);
  refuseOperands(more, usage);
  return operand;
}

function refuseOperands([unexpected]: readonly string[], usage: string): void {
  if (unexpected !== undefined) throw wrongArgument(`Unexpected argument '${unexpected}'`, usage);
}

/** Prints a command's target on stderr, so that an operator notices a wrong target, such as a local service that runs by chance. */
export const nameTarget = (target: string): void => console.error(`target: ${target}`);
