/** Creates the CDK stacks from the settings of the operator, and checks the stacks with cdk-nag. The command `cdk` runs this file. */
import { join } from "node:path";
import { bundle } from "./build/bundle.ts";
import { cachedBundle } from "./build/bundle-cache.ts";
import type { DeployConfig } from "./settings/config.ts";
import type { Place } from "./settings/place.ts";
import { readDeployment } from "./settings/settings-file.ts";
import { addRulePacks } from "./stack/rules.ts";
import { createStacks } from "./stack/stacks.ts";
import { createApp, functionFiles } from "./synth.ts";

const app = createApp();
// Report wrong settings before the build, because the build takes most of the time.
const config = configOrExit(app.node.getAllContext(), placeIn(process.env));
const bundles = join(app.outdir, "bundles");
// Only CI and tests set this variable. A deployment always builds the bundles.
const build = process.env.CI_CACHED_BUNDLES === "1" ? cachedBundle : bundle;
await build(functionFiles(), bundles);
createStacks(app, config, bundles);
await addRulePacks(app);
app.synth();

function configOrExit(context: Readonly<Record<string, unknown>>, place: Place): DeployConfig {
  try {
    return readDeployment(process.cwd(), context, place);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(1);
  }
}

/** Returns the region and the account that the command `cdk` passes. Without AWS credentials, it passes no account. */
function placeIn({ CDK_DEFAULT_REGION, CDK_DEFAULT_ACCOUNT, AWS_REGION }: NodeJS.ProcessEnv): Place {
  return { region: CDK_DEFAULT_REGION ?? AWS_REGION, account: CDK_DEFAULT_ACCOUNT };
}
