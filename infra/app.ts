/** Makes the CDK stacks from the settings on the command line, and checks the stacks with cdk-nag. The command `cdk` runs this file. */
import { join } from "node:path";
import { bundle } from "./build/bundle.ts";
import { cachedBundle } from "./build/bundle-cache.ts";
import { readConfig } from "./settings/config.ts";
import { addRulePacks } from "./stack/rules.ts";
import { createStacks } from "./stack/stacks.ts";
import { createApp, functionFiles } from "./synth.ts";

const app = createApp();
const bundles = join(app.outdir, "bundles");
// A deployment always builds. Only CI sets this variable, because its tests have built the same bundles before.
const build = process.env.CI_CACHED_BUNDLES === "1" ? cachedBundle : bundle;
await build(functionFiles(), bundles);
createStacks(app, readConfig(app.node.getAllContext()), bundles);
await addRulePacks(app);
app.synth();
