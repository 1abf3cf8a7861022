/** Sends mail through Amazon SES. */
import { SESv2Client, SendEmailCommand } from "@aws-sdk/client-sesv2";
import { type ClientSettings, clientConfig } from "#shared/aws/client-config.ts";
import { setting } from "#shared/config.ts";

export interface Mail {
  /** At most 50 addresses. No recipient sees the other addresses. */
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
}

export type SendMail = (mail: Mail) => Promise<void>;

/** Returns a function that tries once to send a mail in the region of the sender's SES identity. Undefined if there is no sender. */
export function openMail(settings: ClientSettings = {}): SendMail | undefined {
  const [from, identity] = [setting("MAIL_FROM"), setting("SES_IDENTITY")];
  if (from === undefined || identity === undefined) return undefined;
  const ses = new SESv2Client(clientConfig({ region: identity.split(":")[3], attempts: 1, ...settings }));
  return async ({ to, subject, text }) => {
    await ses.send(
      new SendEmailCommand({
        FromEmailAddress: from,
        FromEmailAddressIdentityArn: identity,
        Destination: { BccAddresses: [...to] },
        Content: { Simple: { Subject: { Data: subject }, Body: { Text: { Data: text } } } },
      }),
    );
  };
}
