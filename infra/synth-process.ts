/** Synthesizes the templates of the local service in a process of its own, which template-cache.ts starts. */
import * as z from "zod/mini";
import type { BundleOptions } from "./build/bundle-cache.ts";
import { answerParent } from "./build/own-process.ts";
import type { DeployConfig } from "./settings/config.ts";
import { functionFiles, templatesInOrder } from "./synth.ts";

export interface SynthInput {
  readonly config: DeployConfig;
  readonly outDir: string;
  readonly options: BundleOptions;
  readonly caches: string;
}
const Input = z.custom<SynthInput>((it) => typeof it === "object");

answerParent(async (input, onStep) => {
  const { config, outDir, options, caches } = z.parse(Input, input);
  const templates = await templatesInOrder(config, outDir, options, caches, () => onStep("built the functions"));
  return { files: functionFiles(), templates };
});
