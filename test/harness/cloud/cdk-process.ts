/**
 * Runs commands of `cdk`, one after the other. Loading the program takes two seconds of processor time, so one process runs all commands of
 * a test.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import { root } from "../../../infra/build/bundle.ts";

export interface CdkCommand {
  readonly args: readonly string[];
  /** The directory of the cloud assembly, which contains the synthesized templates. */
  readonly app: string;
  /** The profile of the AWS configuration whose credentials replace those of the environment. */
  readonly profile?: string;
}

export interface CdkResult {
  readonly code: number;
  readonly output: string;
}

type Exec = (args: readonly string[]) => Promise<number | undefined>;
// The package exports only its executable file, which ends the process after one command. This module therefore loads the module that the
// executable file loads.
const { exec }: { exec: Exec } = createRequire(import.meta.url)(join(root, "node_modules/aws-cdk/lib/index.js"));

let output = "";
const collect = (chunk: unknown, ...rest: readonly unknown[]): boolean => {
  output += String(chunk);
  // This function replaces `write` of the output streams. The last argument of `write` may be a callback, and `cdk` waits until it is
  // called.
  const done = rest.at(-1);
  if (typeof done === "function") done();
  return true;
};
process.stdout.write = collect;
process.stderr.write = collect;

const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, ...others } = process.env;
const keys = { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY };

process.on("message", ({ args, app, profile }: CdkCommand) => {
  process.env = { ...others, CDK_APP: app, ...(profile === undefined ? keys : { AWS_PROFILE: profile }) };
  output = "";
  const end = (code: number): void => {
    const result: CdkResult = { code, output };
    process.send?.(result);
  };
  exec(args).then(
    (code) => end(code ?? 0),
    (error: unknown) => {
      for (let cause = error; cause instanceof Error; cause = cause.cause) output += `${cause.message}\n`;
      end(1);
    },
  );
});
