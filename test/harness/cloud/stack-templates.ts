/**
 * Deploys synthesized templates to a simulated account without the command `cdk`, so that tests see what CloudFormation does with the
 * templates.
 */
import type { DeployConfig } from "../../../infra/settings/config.ts";
import { stackNameOf } from "../../../infra/settings/names.ts";
import { templateIn } from "../../../infra/synth.ts";
import type { Template } from "../../infra/template.ts";
import { ACCOUNT, type Account, REGION } from "./account.ts";
import { type Cloud, newStack, type Plan, type Stack } from "./stack-state.ts";
import { deploy } from "./stacks.ts";
import { readTemplate } from "./template.ts";

export interface StackTexts {
  readonly data: string;
  readonly service: string;
}

/** Returns the synthesized templates as text. Nested stacks are replaced by their resources. */
export function textsOf({ directory }: Template, { stage }: Pick<DeployConfig, "stage">): StackTexts {
  const read = (name: string) => JSON.stringify(templateIn(directory, `${name}.template.json`));
  return { data: read(`${stackNameOf(stage)}-Data`), service: read(stackNameOf(stage)) };
}

/** Creates the stack, or updates it if it exists. */
export function deployText(cloud: Cloud, name: string, text: string, options: Partial<Plan> = {}): Stack {
  storeAssets(cloud.account, text);
  const existing = cloud.stacks.find((stack) => stack.name === name && stack.status !== "DELETE_COMPLETE");
  const stack = existing ?? newStack(name);
  if (existing === undefined) cloud.stacks.push(stack);
  deploy(cloud, stack, {
    text,
    template: options.template ?? readTemplate(text),
    parameters: { BootstrapVersion: "30" },
    importsExisting: false,
    revertsDrift: false,
    ...options,
  });
  return stack;
}

/** Stores an object for each asset of the template in the bucket of `cdk bootstrap`, as the command `cdk` does before a deployment. */
function storeAssets({ objects }: Account, text: string): void {
  const bucket = objects.get(`cdk-hnb659fds-assets-${ACCOUNT}-${REGION}`);
  for (const [, key = ""] of text.matchAll(/"S3Key": ?"([^"]+)"/g)) bucket?.set(key, Buffer.from("zip"));
}
