/** Compresses buffered answers as API Gateway does for an API with a minimum compression size. */
import { promisify } from "node:util";
import { deflate, gzip } from "node:zlib";
import type { Answer } from "./gateway-answers.ts";

/** API Gateway knows no other coding; it takes the first that the client accepts. */
const codings = { gzip: promisify(gzip), deflate: promisify(deflate) } as const;

/**
 * As it is: an answer below `minimumBytes`, one that is encoded already, and one whose reader accepts no coding by its name
 * (`*` is none).
 */
export async function compressed(
  answer: Answer,
  acceptEncoding: string | undefined,
  minimumBytes: number | undefined,
): Promise<Answer> {
  const coding = acceptedCoding(acceptEncoding);
  const isEncoded = answer.headers.some(([name]) => name.toLowerCase() === "content-encoding");
  const size = Buffer.byteLength(answer.body);
  if (minimumBytes === undefined || coding === undefined || isEncoded || size < minimumBytes) return answer;
  const body = await codings[coding](answer.body);
  return { ...answer, headers: [...answer.headers, ["Content-Encoding", coding]], body };
}

function acceptedCoding(accepted = ""): keyof typeof codings | undefined {
  for (const part of accepted.split(",")) {
    const [coding = "", quality = ""] = part.split(";").map((text) => text.trim().toLowerCase());
    if ((coding === "gzip" || coding === "deflate") && !/^q=0(?:\.0*)?$/.test(quality)) return coding;
  }
  return undefined;
}
