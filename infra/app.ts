/** The entry point of the CDK command line. It reads the context, makes the stacks and checks them with cdk-nag. */
import { join } from "node:path";
import { bundle } from "./build/bundle.ts";
import { readConfig } from "./config.ts";
import { addRulePacks } from "./rules.ts";
import { createStacks } from "./stack.ts";
import { createApp, functionFiles } from "./synth.ts";

const app = createApp();
const bundles = join(app.outdir, "bundles");
await bundle(functionFiles(), bundles);
createStacks(
  app,
  readConfig((key) => app.node.tryGetContext(key)),
  bundles,
);
await addRulePacks(app);
app.synth();
