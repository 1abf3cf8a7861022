/** The options `--stage` and `--stack`, which choose a deployment. */

import { shown } from "../command/accepted.ts";
import { WrongUsage } from "../command/options.ts";
import { STAGE, STAGE_NAME, stackNameOf } from "../settings/names.ts";

export const stackOptions = { stage: { type: "string" }, stack: { type: "string" } } as const;

export const stackUsage = `    [--stage NAME]   the deployment of this stage, even while a local service runs
    [--stack NAME]   the deployment with this stack, even while a local service runs (default ${stackNameOf(undefined)})`;

export interface ChosenStack {
  readonly stage?: string | undefined;
  readonly stack?: string | undefined;
}

/** Undefined if neither option is given. Throws WrongUsage if both are given or if a name is not valid. */
export function chosenStack({ stage, stack }: ChosenStack): string | undefined {
  if (stage !== undefined && stack !== undefined)
    throw new WrongUsage("--stage and --stack cannot be combined: --stage test means --stack Canvassing-test");
  if (stage !== undefined && !STAGE_NAME.test(stage))
    throw new WrongUsage(`--stage: must be ${STAGE}, and not ${shown(stage)}`);
  if (stack !== undefined && !/^\S+$/.test(stack)) {
    throw new WrongUsage(`--stack: must be the name of a stack, and not ${shown(stack)}`);
  }
  return stage === undefined ? stack : stackNameOf(stage);
}
