/** Builds bundles in a process of its own, which bundle-cache.ts starts. */
import * as z from "zod/mini";
import { bundle, bundleShared } from "./bundle.ts";
import { answerParent } from "./own-process.ts";

const Input = z.object({ files: z.array(z.string()), outDir: z.string(), isShared: z.boolean() });

answerParent(async (input) => {
  const { files, outDir, isShared } = z.parse(Input, input);
  return [...(await (isShared ? bundleShared : bundle)(files, outDir))];
});
