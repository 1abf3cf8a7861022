/** The exports of the simulated stacks: values of a stack that other stacks import. */
import type { Cloud, Stack } from "./stack-state.ts";
import { ValidationError } from "./template.ts";

const isLive = ({ status }: Stack): boolean => status !== "DELETE_COMPLETE";

export function userOf(
  { stacks }: Cloud,
  stack: Stack,
  name: string | undefined,
): { name: string; by: string } | undefined {
  const user = stacks.find(
    (other) => other !== stack && isLive(other) && name !== undefined && other.imports.has(name),
  );
  return user === undefined || name === undefined ? undefined : { name, by: user.name };
}

/** Throws if an export that another stack imports would be changed or removed, or if another stack has an export with the same name. */
export function checkExports(cloud: Cloud, stack: Stack, outputs: Stack["outputs"]): void {
  for (const { ExportName, OutputValue } of stack.outputs) {
    const same = outputs.find((output) => output.ExportName === ExportName);
    const use = same?.OutputValue === OutputValue ? undefined : userOf(cloud, stack, ExportName);
    if (use !== undefined) {
      const what = same === undefined ? "deleted" : "updated";
      throw new ValidationError(`Export ${use.name} cannot be ${what} as it is in use by ${use.by}`);
    }
  }
  const taken = exportsOf(cloud, (other) => other !== stack);
  const twice = outputs.find(({ ExportName }) => ExportName !== undefined && taken.has(ExportName));
  if (twice !== undefined)
    throw new ValidationError(`Export with name ${twice.ExportName} is already exported by another stack`);
}

export function exportsOf({ stacks }: Cloud, test: (stack: Stack) => boolean = () => true): Map<string, string> {
  const outputs = stacks.filter((stack) => isLive(stack) && test(stack)).flatMap((stack) => stack.outputs);
  return new Map(
    outputs.flatMap(({ ExportName, OutputValue }) => (ExportName === undefined ? [] : [[ExportName, OutputValue]])),
  );
}
