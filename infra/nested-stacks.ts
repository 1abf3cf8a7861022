/**
 * Replaces each nested stack of a template by its resources, so that the local service, the documents and the tests read one template. In
 * AWS the stacks stay separate, because each has its own limit on resources.
 */
import * as z from "zod/mini";

const NESTED = "AWS::CloudFormation::Stack";

const Fields = z.record(z.string(), z.unknown());
const Nested = z.object({ Properties: z.object({ Parameters: z._default(Fields, {}) }) });
const Resource = z.looseObject({
  Type: z.string(),
  Properties: z._default(Fields, {}),
  DependsOn: z.optional(z.union([z.string(), z.array(z.string())])),
});
const Template = z.looseObject({
  Resources: z.record(z.string(), Resource),
  Outputs: z._default(z.record(z.string(), z.looseObject({ Value: z.unknown() })), {}),
  Parameters: z._default(Fields, {}),
});
type Template = z.infer<typeof Template>;
type Resource = Template["Resources"][string];

/** Returns the replacement of an object in a template. Returns undefined if the object stays as it is. */
type Replace = (value: Readonly<Record<string, unknown>>) => unknown;

function replaced(value: unknown, replace: Replace): unknown {
  if (Array.isArray(value)) return value.map((part) => replaced(part, replace));
  if (typeof value !== "object" || value === null) return value;
  const found = replace({ ...value });
  if (found !== undefined) return found;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, replaced(part, replace)]));
}

/** Returns the template with the resources of nested stacks in place of these stacks. `read` returns the template of a nested stack. */
export function withoutNesting(template: unknown, read: (resource: Resource) => unknown): unknown {
  const parent = Template.parse(template);
  const stacks = Object.entries(parent.Resources).filter(([, { Type }]) => Type === NESTED);
  if (stacks.length === 0) return template;
  const inner = new Map(stacks.map(([id, resource]) => [id, innerOf(Template.parse(read(resource)), resource)]));
  // Remove nested stacks from `DependsOn`. A resource that depends on a nested stack also refers to a resource in that stack, so the order
  // of creation stays.
  const own = Object.entries(parent.Resources)
    .filter(([, { Type }]) => Type !== NESTED)
    .map(
      ([id, resource]) =>
        [
          id,
          { ...resource, DependsOn: [resource.DependsOn ?? []].flat().filter((other) => !inner.has(other)) },
        ] as const,
    );
  const added = [...inner.values()].flatMap(({ Resources }) => Object.entries(Resources));
  const twice = added.find(([id]) => id in parent.Resources);
  if (twice !== undefined) throw new Error(`${twice[0]} is a resource of a nested stack and of its parent`);
  const joined = { ...parent, Resources: Object.fromEntries([...own, ...added]) };
  // Replace `Fn::GetAtt: [id of the stack, "Outputs.NAME"]`, which reads an output of a nested stack, by the value of the output.
  return replaced(joined, (value) => {
    const [id, attribute] = z.safeParse(Attribute, value["Fn::GetAtt"]).data ?? [];
    return inner.get(id ?? "")?.Outputs[attribute?.replace(/^Outputs\./, "") ?? ""]?.Value;
  });
}
const Attribute = z.tuple([z.string(), z.string()]);

function innerOf(template: Template, resource: Resource): Template {
  const { Parameters } = Nested.parse(resource).Properties;
  const passed = ({ Ref }: Readonly<Record<string, unknown>>): unknown =>
    typeof Ref === "string" ? Parameters[Ref] : undefined;
  return Template.parse(replaced(template, passed));
}
