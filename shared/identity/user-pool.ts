/** A Cognito user pool as identity provider: Cognito mails the invitation with a temporary password. */
import * as z from "zod/mini";
import { type AwsCall, AwsError, awsCall } from "#shared/aws/json-call.ts";
import type { IdentityProvider } from "#shared/identity/provider.ts";

const Attributes = z._default(z.array(z.object({ Name: z.string(), Value: z.optional(z.string()) })), []);
const Known = z.object({ UserStatus: z.optional(z.string()), UserAttributes: Attributes });
const Created = z.object({ User: z.object({ Attributes }) });

/** It mails before it answers; every call ends in time for the function to answer. */
const MAILED_MS = 5_000;

/** Longer than the pool usually takes to make a user and to mail. */
const ANSWERS_AFTER_MS = 2_000;

const INVITED = "FORCE_CHANGE_PASSWORD";

export function userPool(
  UserPoolId: string,
  pool: AwsCall = awsCall("cognito-idp", { answerMs: MAILED_MS }),
): IdentityProvider {
  /** The pool knows the user from an earlier try; an invitation that nobody took up is mailed anew. */
  async function inviteAgain(email: string): Promise<z.infer<typeof Attributes>> {
    const { UserStatus, UserAttributes } = Known.parse(await pool("AdminGetUser", { UserPoolId, Username: email }));
    if (UserStatus === INVITED) {
      await pool("AdminCreateUser", { UserPoolId, Username: email, MessageAction: "RESEND" });
    }
    return UserAttributes;
  }

  return {
    takesSubjects: false,
    answersAfterMs: ANSWERS_AFTER_MS,
    invite: async (email) => {
      const UserAttributes = [
        { Name: "email", Value: email },
        { Name: "email_verified", Value: "true" },
      ];
      const attributes = await pool("AdminCreateUser", { UserPoolId, Username: email, UserAttributes })
        .then((answer) => Created.parse(answer).User.Attributes)
        .catch((error: unknown) => {
          if (error instanceof AwsError && error.name === "UsernameExistsException") return inviteAgain(email);
          throw error;
        });
      const sub = attributes.find(({ Name }) => Name === "sub")?.Value;
      if (sub === undefined) throw new Error("the user pool gave the user no subject");
      return { sub };
    },
    withdraw: async (email) => {
      try {
        const { UserStatus } = Known.parse(await pool("AdminGetUser", { UserPoolId, Username: email }));
        if (UserStatus === INVITED) await pool("AdminDeleteUser", { UserPoolId, Username: email });
      } catch (error) {
        if (!(error instanceof AwsError && error.name === "UserNotFoundException")) throw error;
      }
    },
  };
}
