/** Shows one attempt to send a delivery: the headers of the request, and the response of the receiver. */
import { useQuery } from "@tanstack/react-query";
import type { Attempt, DeliveryDetail } from "canvassing-client/api";
import { plainHeaders, standardHeaders } from "../../../shared/webhooks/deliver/headers.ts";
import { Badge } from "../ui/badge.tsx";
import { timeText } from "../ui/text.ts";
import { signaturesOf } from "./signature.ts";
import style from "./webhooks.module.css";

interface AttemptProps {
  readonly delivery: Pick<DeliveryDetail, "id" | "event" | "body">;
  readonly attempt: Attempt;
  /** The secret that the user has typed, or an empty string. It is not sent to the service. */
  readonly secret: string;
}

export function AttemptView({ delivery, attempt, secret }: AttemptProps) {
  const { number, startedAt, latencyMs, status, error, answer } = attempt;
  const isGood = status !== null && status >= 200 && status < 300;
  return (
    <section className={`${style.attempt} stack tight`} aria-label={`Attempt ${number}`}>
      <p>
        {number}. {timeText(startedAt)}{" "}
        <Badge kind={isGood ? "good" : "bad"}>{status === null ? "no answer" : `status ${status}`}</Badge> in{" "}
        {latencyMs} ms
      </p>
      {error !== null && <p>{error}</p>}
      {answer !== "" && <pre className={style.code}>{answer}</pre>}
      <details>
        <summary>Request headers</summary>
        <Headers delivery={delivery} attempt={attempt} secret={secret} />
      </details>
    </section>
  );
}

const NOT_STORED = "(not stored)";

function Headers({ delivery: { id, event, body }, attempt: { number, startedAt }, secret }: AttemptProps) {
  const startedMs = Date.parse(startedAt);
  const { data, error } = useQuery({
    queryKey: ["signatures", id, number, body, secret],
    queryFn: () => signaturesOf(secret, id, body, startedMs),
    enabled: secret !== "",
    retry: false,
    gcTime: 0,
  });
  const headers = {
    ...plainHeaders({ id, event, attempt: number }),
    ...standardHeaders(id, startedMs),
    "X-Service-Signature": NOT_STORED,
    "webhook-signature": NOT_STORED,
    ...data,
  };
  return (
    <>
      <pre className={style.code}>
        {Object.entries(headers)
          .map(([name, value]) => `${name}: ${value}`)
          .join("\n")}
      </pre>
      {secret !== "" && (
        <p>
          These are the signatures of the secret that you have typed. For 24 hours after a change of the secret, the
          request also has the signature of the old secret: in <code>X-Service-Signature-Previous</code>, and as a
          second value in <code>webhook-signature</code>.
        </p>
      )}
      {error !== null && <p>The secret is not valid: after whsec_ it must be base64.</p>}
    </>
  );
}
