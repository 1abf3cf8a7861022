/** Tests that the local KMS keeps its keys over a restart, and checks the encryption context and the policies of functions. */
import { mkdtempSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openKms } from "#shared/aws/kms.ts";
import { type KeyServer, startKms } from "../../../infra/local/engines/kms.ts";
import { keyRefusal, statementsByFunction } from "../../../infra/local/engines/policies.ts";
import { keyArn } from "../../../infra/local/template/names.ts";

const directory = mkdtempSync(join(tmpdir(), "canvassing-kms-"));
const started: KeyServer[] = [];
afterAll(() => {
  for (const server of started) server.stop();
});

const ARN = keyArn("Key");
async function start(file: string | undefined, refuse?: Parameters<KeyServer["serve"]>[1]): Promise<KeyServer> {
  const server = await startKms(file);
  started.push(server);
  server.serve([ARN], refuse);
  return server;
}
const as = ({ endpoint }: KeyServer, accessKeyId = "local", arn = ARN) =>
  openKms(arn, { endpoint, region: "us-east-1", credentials: { accessKeyId, secretAccessKey: "x" } });
const context = { purpose: "test", companyId: "1" };

describe("the local KMS server", () => {
  it("decrypts after a restart with the keys in its file, which only the owner may read; without a file the keys are lost", async () => {
    const file = join(directory, "keys.json");
    const { plain, wrapped } = await as(await start(file)).generateDataKey(context);
    expect(plain).toHaveLength(32);
    expect(Buffer.from(wrapped).includes(Buffer.from(plain))).toBe(false);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await as(await start(file)).unwrap(wrapped, context)).toEqual(plain);
    await expect(as(await start(undefined)).unwrap(wrapped, context)).rejects.toMatchObject({
      name: "InvalidCiphertextException",
    });
  });

  it("decrypts only with the same context and key, and refuses changed data", async () => {
    const server = await start(undefined);
    const { wrapped } = await as(server).generateDataKey(context);
    const changed = Uint8Array.from(wrapped, (byte, i) => (i === wrapped.length - 1 ? byte ^ 1 : byte));
    for (const [bytes, other] of [
      [wrapped, { ...context, companyId: "2" }],
      [wrapped, {}],
      [changed, context],
    ] as const) {
      await expect(as(server).unwrap(bytes, other)).rejects.toMatchObject({ name: "InvalidCiphertextException" });
    }
    const unknown = as(server, "local", keyArn("Other"));
    await expect(unknown.unwrap(wrapped, context)).rejects.toMatchObject({ name: "NotFoundException" });
    await expect(unknown.generateDataKey(context)).rejects.toMatchObject({ name: "NotFoundException" });
  });

  it("refuses a function an action or a context that its policy does not grant", async () => {
    const Condition = { StringEquals: { "kms:EncryptionContext:purpose": "test" } };
    const role = (...actions: string[]) => {
      const Statement = actions.map((Action) => ({ Effect: "Allow", Action, Resource: "key", Condition }));
      return { Type: "AWS::IAM::Role", Properties: { Policies: [{ PolicyDocument: { Statement } }] } };
    };
    const lambda = (name: string) => ({
      Type: "AWS::Lambda::Function",
      Properties: { Role: { "Fn::GetAtt": [`${name}Role`, "Arn"] } },
    });
    const names = ["Signs", "Makes", "Neither"];
    const Resources = {
      SignsRole: role("kms:Decrypt"),
      MakesRole: role("kms:Decrypt", "kms:GenerateDataKey"),
      NeitherRole: role(),
      ...Object.fromEntries(names.map((name) => [name, lambda(name)])),
    };
    const functions = names.map((name) => ({ id: name, name }));
    const server = await start(undefined, keyRefusal(statementsByFunction([{ Resources }], functions)));
    const denied = { name: "AccessDeniedException" };
    const { wrapped } = await as(server, "Makes").generateDataKey(context);
    expect(await as(server, "Signs").unwrap(wrapped, context)).toHaveLength(32);
    await expect(as(server, "Signs").generateDataKey(context)).rejects.toMatchObject(denied);
    await expect(as(server, "Neither").unwrap(wrapped, context)).rejects.toMatchObject(denied);
    await expect(as(server, "Signs").unwrap(wrapped, { companyId: "1" })).rejects.toMatchObject(denied);
    // The local operator is no function, so KMS checks no policy for this caller.
    expect(await as(server, "local").unwrap(wrapped, context)).toHaveLength(32);
  });
});
