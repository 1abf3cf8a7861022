/** Tests that the documented commands for an AWS account exist and accept their arguments. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../../infra/build/bundle.ts";
import { readConfig } from "../../../infra/settings/config.ts";
import { awsCall } from "../../harness/aws-cli.ts";
import { commandsOf, wordsOf } from "../../security/documented-actions.ts";
import { runFile, scripts } from "./command-process.ts";

const documents = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
const commands = documents.flatMap(commandsOf);

/** Returns the words of a command. The placeholders that an operator fills in are replaced by values. */
const filledWords = (command: string): string[] =>
  wordsOf(
    command
      .replace(/ # .*$/, "")
      .replace("--company N", "--company 1")
      .replace("URL", "http://127.0.0.1:9"),
  );

/** The exit code of a command that finds no deployment. */
const FAILED = 1;

/** Throws unless the command accepts its arguments: then it fails because it finds no deployment, and does not print its usage. */
async function checkScript(name: string, args: readonly string[]): Promise<void> {
  const [node, file = "", ...given] = (scripts()[name] ?? "").split(" ");
  if (node !== "node") throw new Error(`no script is named ${name}`);
  const { code, stderr } = await runFile(file, [...given, ...args]);
  if (code !== FAILED || stderr.includes("usage:")) throw new Error(`${code}: ${stderr}`);
}

const subcommands = ["bootstrap", "deploy", "destroy", "drift", "rollback"] as const;
const help = new Map<string, string>();
for (const name of subcommands) {
  help.set(name, (await runFile("node_modules/aws-cdk/bin/cdk", [name, "--help"])).stdout);
}

function checkCdk(name: string, args: readonly string[]): void {
  const text = help.get(name);
  if (text?.startsWith(`cdk ${name}`) !== true) throw new Error(`cdk has no command ${name}`);
  const options = args.filter((arg) => arg.startsWith("-"));
  const unknown = options.filter((option) => !new RegExp(`(?:^|\\s)${option}[\\s,]`, "m").test(text));
  if (unknown.length > 0) throw new Error(`cdk ${name} has no option ${unknown}`);
  readConfig(Object.fromEntries(args.flatMap((arg, at) => (args[at - 1] === "-c" ? [arg.split("=")] : []))));
}

/** Commands that this test does not check, because other tests run them or because they are not commands of this project. */
const known = new Set([
  "npm ci",
  "git checkout COMMIT",
  "curl -i https://api.example.com/health",
  'curl -i "https://ID.execute-api.$AWS_REGION.amazonaws.com/live/health"',
]);

/** Throws unless the command exists and accepts its arguments. */
async function check(command: string): Promise<void> {
  if (known.has(command)) return;
  const [program, subcommand, name = "", ...args] = filledWords(command.replace(/^AWS_PROFILE=\S+ /, ""));
  if (program === "npm" && subcommand === "run") return checkScript(name, args.slice(1));
  if (program === "npx" && subcommand === "cdk") return checkCdk(name, args);
  if (program === "aws") return void awsCall(filledWords(command));
  throw new Error("this test does not know the command");
}

describe("the commands of the documents", () => {
  it.concurrent.each([...new Set(commands)])("%s exists and accepts its arguments", check);

  it.concurrent.each([
    "npm run dead-letters -- redrive nothing",
    "npm run restore -- delete --tables Canvassing-restored",
    "npm run no-such-script -- list",
    "npx cdk deploy --everything",
    "npx cdk drift Canvassing-Data --revert-drift",
    "npx cdk deploy --all -c deliverySender=50",
    "aws events disable-rule --name RULE",
    "aws backup list-copy-jobs --by-created-after yesterday",
    "aws events enable-rule --rule RULE",
    "aws dynamodb delete-table --table-name Canvassing-restored",
    "aws lambda update-alias --function-name FUNCTION --name live --routing-config Weights={}",
    "aws ssm put-parameter --name --value text",
    "aws cloudformation update-termination-protection --stack-name Canvassing-Data --enable-termination-protection false",
    "aws cognito-idp admin-initiate-auth --user-pool-id POOL --client-id CLIENT --auth-flow FLOW --auth-parameters USERNAME",
    "rm -rf /",
  ])("would not pass this test if one were '%s'", async (command) => {
    await expect(check(command)).rejects.toThrow();
  });
});
