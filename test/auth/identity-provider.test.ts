/** Tests the requests that an invitation and its withdrawal send to a Cognito user pool. */
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { type IdentityProvider, userPool } from "#shared/auth/identity-provider.ts";
import { cognitoClient } from "#shared/aws/cognito.ts";
import { closeAfterEach, http } from "../harness/listening.ts";

closeAfterEach();

const sub = "11111111-2222-4333-8444-555555555555";
const attributes = [
  { Name: "email", Value: "a@x.test" },
  { Name: "sub", Value: sub },
];

/**
 * Runs `work` with a simulated user pool. The pool has a user with the status `known`, or no user if `known` is undefined. With
 * `isDeletedMeanwhile`, somebody else deletes the user just before the service does. Also returns the requests to the pool.
 */
async function askPool<T extends object>(
  known: string | undefined,
  work: (identities: IdentityProvider) => Promise<T>,
  isDeletedMeanwhile = false,
): Promise<T & { asked: string[]; bodies: unknown[] }> {
  const asked: string[] = [];
  const bodies: unknown[] = [];
  const { endpoint } = await http(async (response, request) => {
    const operation = String(request.headers["x-amz-target"]).split(".")[1] ?? "";
    const body = JSON.parse(await text(request));
    asked.push(body.MessageAction === undefined ? operation : `${operation} ${body.MessageAction}`);
    bodies.push(body);
    const isThere = operation === "AdminCreateUser" && known !== undefined && body.MessageAction !== "RESEND";
    const isGone = known === undefined || (isDeletedMeanwhile && operation === "AdminDeleteUser");
    const isMissing = operation !== "AdminCreateUser" && isGone;
    response.writeHead(isThere || isMissing ? 400 : 200, { "Content-Type": "application/x-amz-json-1.1" });
    if (isThere) response.end(JSON.stringify({ __type: "UsernameExistsException", message: "exists" }));
    else if (isMissing) response.end(JSON.stringify({ __type: "UserNotFoundException", message: "none" }));
    else if (operation === "AdminGetUser") {
      response.end(JSON.stringify({ Username: sub, UserAttributes: attributes, UserStatus: known }));
    } else response.end(JSON.stringify({ User: { Username: sub, Attributes: attributes } }));
  });
  const credentials = { accessKeyId: "id", secretAccessKey: "secret" };
  const pool = cognitoClient({ endpoint, region: "us-east-1", credentials });
  return { ...(await work(userPool("pool-1", pool))), asked, bodies };
}

const invited = (identities: IdentityProvider) => identities.invite("a@x.test");

test("a new user is created with a verified address", async () => {
  const { bodies, ...rest } = await askPool(undefined, invited);
  expect(rest).toEqual({ sub, asked: ["AdminCreateUser"] });
  const UserAttributes = [
    { Name: "email", Value: "a@x.test" },
    { Name: "email_verified", Value: "true" },
  ];
  expect(bodies).toEqual([{ UserPoolId: "pool-1", Username: "a@x.test", UserAttributes }]);
});

test("a user whom an earlier invitation created keeps the subject and gets another invitation", async () => {
  const again = await askPool("FORCE_CHANGE_PASSWORD", invited);
  expect(again.sub).toBe(sub);
  expect(again.asked).toEqual(["AdminCreateUser", "AdminGetUser", "AdminCreateUser RESEND"]);
});

test("a user who has signed in before keeps the subject and gets no second invitation", async () => {
  const known = await askPool("CONFIRMED", invited);
  expect(known.sub).toBe(sub);
  expect(known.asked).toEqual(["AdminCreateUser", "AdminGetUser"]);
});

test.each([
  ["who has never signed in is deleted", "FORCE_CHANGE_PASSWORD", ["AdminGetUser", "AdminDeleteUser"]],
  ["who has signed in is left alone", "CONFIRMED", ["AdminGetUser"]],
  ["whom the pool does not know is gone already", undefined, ["AdminGetUser"]],
  ["who is deleted meanwhile is gone too", "FORCE_CHANGE_PASSWORD", ["AdminGetUser", "AdminDeleteUser"], true],
])("a withdrawn user %s", async (_, known, operations, isDeletedMeanwhile?: boolean) => {
  const withdraw = async (identities: IdentityProvider) => {
    await identities.withdraw("a@x.test");
    return {};
  };
  const { asked } = await askPool(known, withdraw, isDeletedMeanwhile);
  expect(asked).toEqual(operations);
});
