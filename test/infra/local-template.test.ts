/** The local runtime refuses what it cannot honour, by name. */
import { describe, expect, test } from "vitest";
import { describeStack } from "../../infra/local/outputs.ts";
import { readStack } from "../../infra/local/stack.ts";
import { fixtureTemplate } from "./local-fixture.ts";
import { ownIdentity, synthesized } from "./template.ts";

const endpoint = "http://127.0.0.1:1";
type Template = ReturnType<typeof fixtureTemplate>;

function changed(change: (resources: Template["Resources"]) => void): () => unknown {
  const template = fixtureTemplate();
  change(template.Resources);
  return () => readStack(template, endpoint, "/assembly");
}

function set(id: string, name: string, value: unknown): (resources: Template["Resources"]) => void {
  return (resources) => {
    const resource = resources[id];
    if (resource === undefined) throw new Error(`no ${id}`);
    resource.Properties[name] = value;
  };
}

test("references become names of this machine", () => {
  const stack = readStack(fixtureTemplate(), endpoint, "/assembly");
  expect(stack.functions[0]).toMatchObject({
    name: "Echo",
    directory: "/assembly/echo",
    Environment: { Variables: { SEEN_URL: "http://127.0.0.1:1/000000000000/Seen" } },
  });
  expect(stack.eventSources[0]).toMatchObject({
    EventSourceArn: "arn:aws:dynamodb:us-east-1:000000000000:table/Table/stream/local",
  });
});

describe("refuses", () => {
  test.each([
    ["a property it does not know", set("Echo", "Layers", []), "Echo.Layers"],
    ["a value it cannot honour", set("Echo", "Runtime", "python3.14"), "Echo.Runtime"],
    ["lines of text", set("Echo", "LoggingConfig", { LogFormat: "Text" }), "Echo.LoggingConfig.LogFormat"],
    ["a nested setting", set("OfQueue", "ScalingConfig", { MinimumConcurrency: 1 }), "OfQueue.ScalingConfig"],
    ["a stream setting", set("OfTable", "TumblingWindowInSeconds", 5), "OfTable.TumblingWindowInSeconds"],
    ["an authorizer", set("GetThing", "AuthorizationType", "AWS_IAM"), "GetThing.AuthorizationType"],
    ["an intrinsic", set("Echo", "Timeout", { "Fn::GetAZs": "" }), "Fn::GetAZs"],
    ["a reference to nothing", set("Echo", "FunctionName", { Ref: "Nobody" }), "Ref Nobody"],
  ])("%s", (_, change, message) => {
    expect(changed(change)).toThrow(message);
  });

  test("a type of resource it does not know, and tells all faults at once", () => {
    const faulty = changed((resources) => {
      resources.Alien = { Type: "AWS::Kinesis::Stream", Properties: {} };
      set("Echo", "Layers", [])(resources);
    });
    expect(faulty).toThrow("Alien: resources of type AWS::Kinesis::Stream are not supported");
    expect(faulty).toThrow("Echo.Layers");
  });
});

test("of several queues that are read, the outputs name that of deliveries, and those that nobody reads", async () => {
  const identity = { issuer: "http://127.0.0.1:3000/local/oidc", audience: ["local"] };
  const { resources, outputs } = await synthesized({ ...ownIdentity, ...identity });
  const stack = readStack({ Resources: resources, Outputs: outputs }, endpoint, "/assembly");
  const places = { apiUrl: "", issuer: "", audience: "", dynamoDbEndpoint: "", queues: { endpoint } };
  const { DeliveryQueueUrl, DeadLetterQueueUrls } = describeStack(stack, places);
  expect(DeliveryQueueUrl).toMatch(/\/DeliveriesQueue/);
  expect(DeadLetterQueueUrls).toHaveLength(stack.queues.length - 3);
});
