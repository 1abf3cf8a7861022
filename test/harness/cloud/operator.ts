/** Runs the commands of docs/deploy.md that deploy and destroy stacks, on the simulated CloudFormation. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../infra/build/bundle.ts";
import { readConfig } from "../../../infra/settings/config.ts";
import { deployStack, destroy, liveStack, newCloud, type Stack, stacksFor } from "./stacks.ts";

/** The content of settings.json. */
type Settings = Readonly<Record<string, unknown>>;

export function newOperator(given: Settings) {
  const cloud = newCloud();
  let settings = given;

  /** Returns the newest stack with this name, even if it is deleted. */
  function stackOf(name: string): Stack {
    const stack = cloud.stacks.findLast((one) => one.name === name);
    if (stack === undefined) throw new Error(`there is no stack ${name}`);
    return stack;
  }

  /**
   * Deploys the stacks that the command names. The settings are those of settings.json and of the command's `-c` options. Throws if a
   * deployment fails.
   */
  async function deploy(command: string): Promise<void> {
    const more = Object.fromEntries(
      [...command.matchAll(/-c (\w+)=(\S+)/g)].map(([, key = "", value]) => [key, value]),
    );
    const options = {
      importsExisting: command.includes(" --import-existing-resources"),
      revertsDrift: command.includes(" --revert-drift"),
    };
    for (const [name, template] of await stacksFor(readConfig({ ...settings, ...more }))) {
      if (isNamed(command, name)) deployStack(cloud, name, template, options);
    }
  }

  async function run(command: string): Promise<void> {
    if (command.startsWith("npx cdk deploy ")) return deploy(command);
    for (const name of ["Canvassing", "Canvassing-Data"].filter((one) => isNamed(command, one))) {
      const stack = liveStack(cloud, name);
      if (stack === undefined) continue;
      if (command.startsWith("npx cdk destroy ")) destroy(cloud, stack);
      else if (command.endsWith(" --no-enable-termination-protection")) stack.isProtected = false;
      else throw new Error(`the test cannot run: ${command}`);
    }
  }

  return {
    cloud,
    stackOf,
    /** Runs the commands one after the other. Throws if CloudFormation refuses one of them. */
    async run(...commands: readonly string[]): Promise<void> {
      for (const command of commands) await run(command);
    },
    /** Replaces settings.json. */
    configure: (next: Settings): void => {
      settings = next;
    },
  };
}

const isNamed = (command: string, stack: string): boolean =>
  command.split(" ").some((word) => word === "--all" || word === stack);

const sections = (document: string): string[] => readFileSync(join(root, document), "utf8").split(/^##? /m);

function sectionOf(document: string, heading: string): string {
  const section = sections(document).find((part) => part.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`${document} has no section ${heading}`);
  return section;
}

/** Returns the commands of `cdk` and `aws` in the shell blocks (`sh aws`) below a heading of a document. */
export const documented = (heading: string, document = "docs/deploy.md"): string[] =>
  [...sectionOf(document, heading).matchAll(/^```sh aws\n([\s\S]*?)^```$/gm)]
    .flatMap(([, lines = ""]) => lines.trim().split("\n"))
    .filter((command) => /^npx cdk (?!bootstrap)|^aws /.test(command));

/** Returns the names of the settings in the JSON block below a heading of docs/deploy.md. */
export function documentedSettings(heading: string): string[] {
  const [, block = "{}"] = /^```json\n([\s\S]*?)^```$/m.exec(sectionOf("docs/deploy.md", heading)) ?? [];
  return Object.keys(JSON.parse(block));
}
