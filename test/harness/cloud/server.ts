/**
 * A local endpoint for `AWS_ENDPOINT_URL` with the services that a deployment uses: CloudFormation, STS, Parameter Store, the operations of
 * S3 for assets, and the event source mappings of Lambda. It finishes each operation immediately, so the command `cdk` never waits for it.
 */
import type { IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { type LocalServer, serveOnLoopback } from "../../../infra/local/servers/listener.ts";
import { at, type Fields, listed } from "../../infra/template.ts";
import { iamActions, signatureOf } from "../iam-actions.ts";
import { ACCOUNT, type Account, bootstrappedAccount, find, type Made, nameOfArn, REGION } from "./account.ts";
import { actions, type CloudFormation, openCloudFormation, type Query } from "./cloudformation.ts";
import { ValidationError } from "./template.ts";
import { type XmlValue, xml } from "./xml.ts";

export interface LocalCloud extends LocalServer {
  readonly cloudFormation: CloudFormation;
  readonly account: Account;
  /** The IAM actions of the requests so far, by their caller: the name of an assumed role, or the access key of a person. */
  readonly used: ReadonlyMap<string, ReadonlySet<string>>;
}

export async function serveCloud(): Promise<LocalCloud> {
  const account = bootstrappedAccount();
  const cloudFormation = openCloudFormation(account);
  const used = new Map<string, Set<string>>();
  const server = await serveOnLoopback(async (request, response) => {
    const body = await buffer(request);
    const { method = "GET", url = "/", headers } = request;
    const { caller, service } = signatureOf(headers);
    const actions = used.get(caller) ?? new Set();
    for (const action of iamActions({ service, method, url, headers, body: body.toString() })) actions.add(action);
    used.set(caller, actions);
    const target = headers["x-amz-target"];
    const isQuery = /x-www-form-urlencoded/.test(headers["content-type"] ?? "");
    const { status, ...answer } =
      typeof target === "string"
        ? answerJson(account, target, body)
        : isQuery
          ? answerQuery(cloudFormation, new Map(new URLSearchParams(body.toString("utf8"))))
          : (answerLambda(account, request, body) ?? answerS3(account, request, body));
    const type = typeof target === "string" ? "application/x-amz-json-1.1" : "text/xml";
    response.writeHead(status, { "content-type": type, "x-amzn-requestid": "local" }).end(answer.body);
  });
  return { ...server, cloudFormation, account, used };
}

function answerQuery(cloud: CloudFormation, query: Query): Answer {
  const action = query.get("Action") ?? "";
  cloud.calls.push(action);
  const work = actions[action] ?? security[action];
  try {
    if (work === undefined) throw new ValidationError(`the local endpoint has no action ${action}`, "InvalidAction");
    const result = xml({ [`${action}Result`]: work(cloud, query), ResponseMetadata: { RequestId: "local" } });
    return { status: 200, body: `<${action}Response>${result}</${action}Response>` };
  } catch (error) {
    const Message = error instanceof Error ? error.message : String(error);
    const Code = error instanceof ValidationError ? error.code : "ValidationError";
    const text = xml({ Error: { Type: "Sender", Code, Message }, RequestId: "local" });
    return { status: 400, body: `<ErrorResponse>${text}</ErrorResponse>` };
  }
}

/** The actions of STS. `AssumeRole` succeeds only for a role that exists, and its access key is the name of the role. */
const security: Readonly<Record<string, (cloud: CloudFormation, query: Query) => XmlValue>> = {
  GetCallerIdentity: () => ({ Account: ACCOUNT, Arn: `arn:aws:iam::${ACCOUNT}:user/operator`, UserId: "operator" }),
  AssumeRole({ account }, query) {
    const role = nameOfArn(query.get("RoleArn"));
    if (find(account, "AWS::IAM::Role", role) === undefined) throw new Error(`not authorized to assume ${role}`);
    const Expiration = new Date(Date.now() + 3_600_000).toISOString();
    const Credentials = { AccessKeyId: role, SecretAccessKey: "local", SessionToken: "local", Expiration };
    return { Credentials, AssumedRoleUser: { Arn: query.get("RoleArn"), AssumedRoleId: "local" } };
  },
};

interface Answer {
  readonly status: number;
  readonly body: string | Buffer;
}

function answerJson(account: Account, target: string, body: Buffer): Answer {
  const name = String(at(JSON.parse(body.toString("utf8")), "Name"));
  const value = target === "AmazonSSM.GetParameter" ? account.parameters.get(name) : undefined;
  if (value !== undefined) {
    return {
      status: 200,
      body: JSON.stringify({ Parameter: { Name: name, Value: value, Type: "String", Version: 1 } }),
    };
  }
  return { status: 400, body: JSON.stringify({ __type: "ParameterNotFound", message: `${target} ${name}` }) };
}

const MAPPINGS = /^\/2015-03-31\/event-source-mappings\/?([^?]*)/;

/** Answers requests that read, enable or disable event source mappings. Returns undefined for other requests. */
function answerLambda(account: Account, { method, url = "/" }: IncomingMessage, body: Buffer): Answer | undefined {
  const [, id] = MAPPINGS.exec(url) ?? [];
  if (id === undefined) return undefined;
  const mappings = account.resources.filter(({ type }) => type === "AWS::Lambda::EventSourceMapping");
  const found = mappings.find((made) => made.id === id);
  if (id === "") return { status: 200, body: JSON.stringify({ EventSourceMappings: mappings.map(described) }) };
  if (found === undefined) return { status: 404, body: JSON.stringify({ Type: "User", Message: `no mapping ${id}` }) };
  if (method === "PUT") {
    const { Enabled }: { Enabled?: boolean } = JSON.parse(body.toString("utf8"));
    found.properties = { ...found.properties, Enabled };
  }
  return { status: 200, body: JSON.stringify(described(found)) };
}

function described({ id, properties: { FunctionName, Enabled = true } }: Made): Fields {
  const name = String(FunctionName);
  const FunctionArn = name.startsWith("arn:") ? name : `arn:aws:lambda:${REGION}:${ACCOUNT}:function:${name}`;
  return { UUID: id, FunctionArn, State: Enabled === true ? "Enabled" : "Disabled" };
}

function answerS3(account: Account, { method, url = "/" }: IncomingMessage, body: Buffer): Answer {
  const { pathname, searchParams } = new URL(url, "http://localhost");
  const [bucket = "", ...rest] = decodeURIComponent(pathname.slice(1)).split("/");
  const objects = account.objects.get(bucket);
  const refusal = (status: number, Code: string): Answer => ({
    status,
    body: method === "HEAD" ? "" : `<Error>${xml({ Code, Message: Code })}</Error>`,
  });
  if (objects === undefined) return refusal(404, "NoSuchBucket");
  const key = rest.join("/");
  if (key === "") return { status: 200, body: bucketAnswer(account, bucket, searchParams, objects) };
  if (method === "PUT") {
    objects.set(key, body);
    return { status: 200, body: "" };
  }
  const stored = objects.get(key);
  return stored === undefined ? refusal(404, "NoSuchKey") : { status: 200, body: method === "HEAD" ? "" : stored };
}

/** Answers requests for a bucket's region, encryption, notifications or list of objects. */
function bucketAnswer(
  account: Account,
  bucket: string,
  query: URLSearchParams,
  objects: ReadonlyMap<string, Buffer>,
): string {
  if (query.has("location")) return `<LocationConstraint>${REGION}</LocationConstraint>`;
  if (query.has("encryption")) return "<ServerSideEncryptionConfiguration/>";
  if (query.has("notification")) {
    const { properties } = find(account, "AWS::S3::Bucket", bucket) ?? { properties: {} };
    const queues = listed(at(properties, "NotificationConfiguration", "QueueConfigurations"));
    const parts = queues.map((one) => {
      const text = xml({ Queue: String(at(one, "Queue")), Event: String(at(one, "Event")) });
      return `<QueueConfiguration>${text}</QueueConfiguration>`;
    });
    return `<NotificationConfiguration>${parts.join("")}</NotificationConfiguration>`;
  }
  const contents = [...objects.keys()].map((Key) => `<Contents>${xml({ Key })}</Contents>`);
  return `<ListBucketResult><IsTruncated>false</IsTruncated>${contents.join("")}</ListBucketResult>`;
}
