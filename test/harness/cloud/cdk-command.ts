/** Runs the deployment commands of docs/deploy.md with the real command `cdk`. One endpoint simulates all AWS services. */
import { type ChildProcess, fork } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../infra/build/bundle.ts";
import { readConfig } from "../../../infra/settings/config.ts";
import { createStacks } from "../../../infra/stack/stacks.ts";
import { createApp, functionFiles } from "../../../infra/synth.ts";
import { sendAws } from "../aws-cli.ts";
import type { CdkCommand, CdkResult } from "./cdk-process.ts";

export interface Deployment {
  /** Synthesizes the stacks. Every later `cdk` command of `run` uses these stacks. */
  synthesize(context: Readonly<Record<string, unknown>>): void;
  /** Changes the code of one function, so that the next synthesis creates a different template. */
  changeCode(file: string): void;
  /**
   * Runs a `cdk` or `aws` command of docs/deploy.md. In the command, the stack name `Canvassing` is replaced by the name of this
   * deployment's stack. If an `aws` command fails, this function throws the error of the SDK.
   */
  run(command: string): Promise<{ readonly code: number; readonly output: string }>;
  stop(): void;
}

/**
 * @param directory an empty directory for bundles and synthesized stacks
 * @param environment the endpoint, the region and the credentials
 */
export function deploymentOf(stage: string, directory: string, environment: NodeJS.ProcessEnv): Deployment {
  const bundles = join(directory, "bundles");
  let assembly = "";
  let count = 0;
  let cdk: ChildProcess | undefined;
  const write = (file: string, code: string): void => {
    mkdirSync(join(bundles, file), { recursive: true });
    writeFileSync(join(bundles, file, "index.mjs"), code);
  };
  // A deployment does not run the code, so the code may be any text. All functions have the same code, so that `cdk` uploads only one file.
  for (const file of functionFiles()) write(file, "// the code of a function");
  const env = {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    HOME: directory,
    CI: "true",
    ...environment,
    // These variables make the command ask no questions, fetch no notices and send no usage data.
    CDK_YES: "true",
    CDK_REQUIRE_APPROVAL: "never",
    CDK_NOTICES: "false",
    CDK_DISABLE_CLI_TELEMETRY: "true",
  };
  return {
    synthesize(context) {
      count += 1;
      assembly = join(directory, `assembly-${count}`);
      const app = createApp({
        outdir: assembly,
        treeMetadata: false,
        analyticsReporting: false,
        builtinCloudFormationValidation: false,
      });
      createStacks(app, readConfig({ ...context, stage }), bundles);
      app.synth();
    },
    changeCode: (file) => write(file, `// ${file}, changed ${count} times`),
    async run(command) {
      const words = command.replaceAll("Canvassing", `Canvassing-${stage}`).split(" ");
      if (words[0] === "aws") {
        await sendAws(words, environment.AWS_ENDPOINT_URL);
        return { code: 0, output: words.join(" ") };
      }
      const [, profile] = /^AWS_PROFILE=(\S+)$/.exec(words[0] ?? "") ?? [];
      const [npx, name, ...rest] = profile === undefined ? words : words.slice(1);
      if (npx !== "npx" || name !== "cdk") throw new Error(`the test cannot run: ${command}`);
      cdk ??= fork(join(import.meta.dirname, "cdk-process.ts"), { cwd: directory, env });
      const { code, output } = await resultOf(cdk, {
        args: rest,
        app: assembly,
        ...(profile !== undefined && { profile }),
      });
      return { code, output: `${command}\n${output}` };
    },
    stop: () => void cdk?.kill(),
  };
}

function resultOf(cdk: ChildProcess, command: CdkCommand): Promise<CdkResult> {
  return new Promise((resolve, reject) => {
    const end = (code: number | null): void => reject(new Error(`cdk ended with ${code}`));
    cdk.once("exit", end).once("message", (result: CdkResult) => {
      cdk.off("exit", end);
      resolve(result);
    });
    cdk.send(command);
  });
}

/** Returns the commands in the shell blocks (`sh aws`) below a heading of a document. */
export function documented(heading: string, document = "docs/deploy.md"): string[] {
  const section = sections(document).find((part) => part.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`${document} has no section ${heading}`);
  return [...section.matchAll(/^```sh aws\n([\s\S]*?)^```$/gm)].flatMap(([, lines = ""]) => lines.trim().split("\n"));
}

/** Returns the settings in the JSON block below a heading of docs/deploy.md. */
export function documentedContext(heading: string): string[] {
  const section = sections("docs/deploy.md").find((part) => part.startsWith(`${heading}\n`)) ?? "";
  const [, block = "{}"] = /^```json\n([\s\S]*?)^```$/m.exec(section) ?? [];
  return Object.keys(JSON.parse(block));
}

const sections = (document: string): string[] => readFileSync(join(root, document), "utf8").split(/^##? /m);

/** Writes the profile of docs/permissions.md, and a profile with the credentials of an operator, into the home directory. */
export function writeProfiles(home: string, { account, region }: { account: string; region: string }): void {
  const [, block = ""] =
    /^```ini\n([\s\S]*?)^```$/m.exec(readFileSync(join(root, "docs/permissions.md"), "utf8")) ?? [];
  mkdirSync(join(home, ".aws"));
  writeFileSync(join(home, ".aws/config"), block.replaceAll("ACCOUNT", account).replaceAll("REGION", region));
  writeFileSync(
    join(home, ".aws/credentials"),
    "[default]\naws_access_key_id = operator\naws_secret_access_key = local\n",
  );
}
