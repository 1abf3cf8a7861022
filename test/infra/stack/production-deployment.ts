/** Deploys production in a simulated account, whose CloudFormation and CodeDeploy work as in AWS's documentation. */
import { beforeEach } from "vitest";
import { type DeployConfig, readConfig } from "../../../infra/settings/config.ts";
import { bootstrappedAccount } from "../../harness/cloud/account.ts";
import { documented } from "../../harness/cloud/cdk-command.ts";
import { type CloudFormation, openCloudFormation } from "../../harness/cloud/cloudformation.ts";
import type { Stack } from "../../harness/cloud/stack-state.ts";
import { deployText, textsOf } from "../../harness/cloud/stack-templates.ts";
import { synthesized } from "../template.ts";

export const alarmEmail = "operator@example.com";
export const settings = { preset: "production", alarmEmail };
export const production = readConfig(settings);
export const LIST = "EndpointsProspectsListFunctionLive";

/** The `cdk` commands of the document that switch the service to a restored table, and back. */
export const switchCommands = documented("Restore the whole table", "docs/keep.md").filter((one) =>
  one.startsWith("npx cdk"),
);

/** Returns the settings that a `cdk` command contains. */
export const contextOf = (command: string | undefined) =>
  Object.fromEntries([...(command ?? "").matchAll(/-c (\w+)=(\S+)/g)].map(([, key, value]) => [key, value]));

/** Returns the settings with a different memory size for the list function. Deploying them creates a new version of this function only. */
export const withMemory = (config: DeployConfig, megabytes: number): DeployConfig => {
  const memoryMb = { ...config.capacity.memoryMb, "prospects/list": megabytes };
  return { ...config, capacity: { ...config.capacity, memoryMb } };
};

export const resource = ({ resources }: Stack, id: RegExp) => [...resources].find(([name]) => id.test(name))?.[1].made;
export const versionOf = (stack: Stack) =>
  resource(stack, new RegExp(`^${LIST}[0-9A-F]{8}$`))?.properties.FunctionVersion;

/** Returns the logical ids of the resources that the last deployment of the stack has created, changed or deleted. */
export function changedBy({ events }: Stack): string[] {
  const end = events.findIndex(({ ResourceStatusReason }) => ResourceStatusReason === "User Initiated");
  return [...new Set(events.slice(0, end).map(({ LogicalResourceId }) => LogicalResourceId))];
}

/** Opens a new account before each test. Call this function once, at the top of the file. */
export function productionAccount() {
  let cloud: CloudFormation;
  beforeEach(() => {
    cloud = openCloudFormation(bootstrappedAccount());
  });

  async function deployed(config: DeployConfig): Promise<Stack> {
    const { data, service } = textsOf(await synthesized(config), config);
    deployText(cloud, "Canvassing-Data", data);
    return deployText(cloud, "Canvassing", service);
  }

  const moved = () => cloud.moves.map(({ alias }) => alias.replace(/[0-9A-F]{8}$/, ""));

  return { deployed, moved, cloud: (): CloudFormation => cloud };
}
