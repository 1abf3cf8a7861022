/** Finds the method of the template that a request is for, in API Gateway's way: fixed parts before parameters. */
import type { Method } from "./api-resources.ts";
import { LocalError } from "./error.ts";
import { rootResourceId } from "./names.ts";
import type { Stack } from "./stack.ts";

export interface Match {
  readonly method: Method;
  /** Resource path as the template has it, e.g. `/api/prospects/{id}`. */
  readonly resource: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** `segments` are the decoded parts of the path. Undefined: nothing in the template is at this path with this method. */
export type Router = (verb: string, segments: readonly string[]) => Match | undefined;

interface Node {
  readonly path: string;
  readonly fixed: Map<string, Node>;
  readonly methods: Map<string, Method>;
  parameter?: { readonly name: string; readonly greedy: boolean; readonly node: Node };
}

export function createRouter(stack: Stack): Router {
  const root = buildTree(stack);
  return (verb, segments) => {
    const parameters = new Map<string, string>();
    const node = find(root, segments, parameters, verb);
    const method = node && methodFor(node, verb);
    return method && node && { method, resource: node.path, parameters };
  };
}

const methodFor = (node: Node, verb: string): Method | undefined => node.methods.get(verb) ?? node.methods.get("ANY");

function find(
  node: Node,
  segments: readonly string[],
  parameters: Map<string, string>,
  verb: string,
): Node | undefined {
  const [segment, ...rest] = segments;
  if (segment === undefined) return methodFor(node, verb) && node;
  const fixed = node.fixed.get(segment);
  const found = fixed && find(fixed, rest, parameters, verb);
  if (found !== undefined) return found;
  const { parameter } = node;
  if (parameter === undefined || segment === "") return undefined;
  const below = find(parameter.node, parameter.greedy ? [] : rest, parameters, verb);
  if (below !== undefined) parameters.set(parameter.name, parameter.greedy ? segments.join("/") : segment);
  return below;
}

function buildTree({ restApis, apiResources, methods }: Stack): Node {
  const [api, ...others] = restApis;
  if (api === undefined || others.length > 0) throw new LocalError("the template must have exactly one REST API");
  const root = createNode("");
  const nodes = new Map([[rootResourceId(api.id), root]]);
  let waiting = [...apiResources];
  while (waiting.length > 0) {
    const left = waiting.filter(({ id, ParentId, PathPart }) => {
      const parent = nodes.get(ParentId);
      if (parent !== undefined) nodes.set(id, addChild(parent, PathPart));
      return parent === undefined;
    });
    if (left.length === waiting.length) throw new LocalError(`${left[0]?.id}.ParentId: names no resource of the API`);
    waiting = left;
  }
  for (const method of methods) {
    const node = nodes.get(method.ResourceId);
    if (node === undefined) throw new LocalError(`${method.id}.ResourceId: names no resource of the API`);
    node.methods.set(method.HttpMethod, method);
  }
  return root;
}

const createNode = (path: string): Node => ({ path: path === "" ? "/" : path, fixed: new Map(), methods: new Map() });

function addChild(parent: Node, part: string): Node {
  const node = createNode(`${parent.path === "/" ? "" : parent.path}/${part}`);
  const name = /^\{([^+}]+)(\+?)\}$/.exec(part);
  if (name === null) parent.fixed.set(part, node);
  else parent.parameter = { name: name[1] ?? "", greedy: name[2] === "+", node };
  return node;
}
