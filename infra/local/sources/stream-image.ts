/**
 * Converts the images in stream records from the form of the AWS SDK to the form in which Lambda passes them to functions. An image
 * contains the attributes of a row before or after a change. In Lambda's form, binary values are base64 strings.
 */
import type { AttributeValue } from "@aws-sdk/client-dynamodb-streams";
import type { AttributeValue as StreamValue } from "aws-lambda";

export const imageOf = (item: Readonly<Record<string, AttributeValue>>): Record<string, StreamValue> =>
  Object.fromEntries(Object.entries(item).map(([name, value]) => [name, attributeOf(value)]));

function attributeOf({ B, BS, M, L, ...value }: AttributeValue): StreamValue {
  if (B !== undefined) return { B: Buffer.from(B).toString("base64") };
  if (BS !== undefined) return { BS: BS.map((bytes) => Buffer.from(bytes).toString("base64")) };
  if (M !== undefined) return { M: imageOf(M) };
  if (L !== undefined) return { L: L.map(attributeOf) };
  if (value.S !== undefined) return { S: value.S };
  if (value.N !== undefined) return { N: value.N };
  if (value.BOOL !== undefined) return { BOOL: value.BOOL };
  if (value.SS !== undefined) return { SS: value.SS };
  if (value.NS !== undefined) return { NS: value.NS };
  return { NULL: true };
}
