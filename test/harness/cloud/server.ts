/** An endpoint of CloudFormation and Lambda, with which `npm run senders` finds, enables and disables the event source mappings of a deployment. */
import { buffer } from "node:stream/consumers";
import * as z from "zod/mini";
import { serveOnLoopback } from "../../../infra/local/servers/listener.ts";
import type { Fields } from "../../infra/template.ts";
import { iamActions, serviceOf } from "../iam-actions.ts";
import { ACCOUNT, type Made, REGION } from "./account.ts";
import { type Cloud, liveStack, newCloud } from "./stacks.ts";
import { type XmlValue, xml } from "./xml.ts";

export async function serveCloud() {
  const cloud = newCloud();
  /** The IAM actions of the requests so far. */
  const actions = new Set<string>();
  const server = await serveOnLoopback(async (request, response) => {
    const body = (await buffer(request)).toString();
    const { method = "GET", url = "/", headers } = request;
    const service = serviceOf(headers);
    for (const action of iamActions({ service, method, url, headers, body })) actions.add(action);
    const [status, text] = service === "lambda" ? answerLambda(cloud, url, body) : answerQuery(cloud, body);
    response.writeHead(status).end(text);
  });
  return { ...server, cloud, actions };
}

function answerQuery(cloud: Cloud, body: string): [status: number, text: string] {
  const query = new URLSearchParams(body);
  const [action, name] = [query.get("Action"), query.get("StackName") ?? ""];
  const stack = liveStack(cloud, name);
  if (stack === undefined) {
    const error = { Code: "ValidationError", Message: `Stack with id ${name} does not exist` };
    return [400, `<ErrorResponse>${xml({ Error: error })}</ErrorResponse>`];
  }
  const resources = [...stack.resources].map(([LogicalResourceId, { made }]) => ({
    LogicalResourceId,
    PhysicalResourceId: made.id,
  }));
  const answer: XmlValue =
    action === "GetTemplate" ? { TemplateBody: JSON.stringify(stack.template) } : { StackResources: resources };
  return [200, `<${action}Response>${xml({ [`${action}Result`]: answer })}</${action}Response>`];
}

const Update = z.object({ Enabled: z.boolean() });

/** Lists the event source mappings, or reads one of them. A request with a body enables or disables the mapping. */
function answerLambda({ account }: Cloud, url: string, body: string): [status: number, text: string] {
  const [, id = ""] = /\/event-source-mappings\/?([^/?]*)/.exec(url) ?? [];
  const mappings = account.resources.filter(({ type }) => type === "AWS::Lambda::EventSourceMapping");
  if (id === "") return [200, JSON.stringify({ EventSourceMappings: mappings.map(described) })];
  const found = mappings.find((made) => made.id === id);
  if (found === undefined) return [404, JSON.stringify({ Type: "User", Message: `no mapping ${id}` })];
  if (body !== "") found.properties = { ...found.properties, ...Update.parse(JSON.parse(body)) };
  return [200, JSON.stringify(described(found))];
}

function described({ id, properties: { FunctionName, Enabled = true } }: Made): Fields {
  const name = String(FunctionName);
  const FunctionArn = name.startsWith("arn:") ? name : `arn:aws:lambda:${REGION}:${ACCOUNT}:function:${name}`;
  return { UUID: id, FunctionArn, State: Enabled === true ? "Enabled" : "Disabled" };
}
