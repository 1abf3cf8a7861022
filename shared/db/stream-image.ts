/** Converts the image of a row in a DynamoDB stream record to an item. Throws NewerShape if the row has a shape of a later release. */
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import type { AttributeValue as StreamValue } from "aws-lambda";
import type { Item } from "#shared/db/expression.ts";
import { readable } from "#shared/db/shapes.ts";

export const itemOfImage = (image: Readonly<Record<string, StreamValue>>): Item =>
  readable(unmarshall(valuesOf(image)));

const valuesOf = (image: Readonly<Record<string, StreamValue>>): Record<string, AttributeValue> =>
  Object.fromEntries(Object.entries(image).map(([name, value]) => [name, attributeOf(value)]));

function attributeOf(value: StreamValue): AttributeValue {
  const { S, N, B, BOOL, NULL, M, L, SS, NS, BS } = value;
  if (S !== undefined) return { S };
  if (N !== undefined) return { N };
  if (B !== undefined) return { B: bytesOf(B) };
  if (BOOL !== undefined) return { BOOL };
  if (NULL !== undefined) return { NULL };
  if (M !== undefined) return { M: valuesOf(M) };
  if (L !== undefined) return { L: L.map(attributeOf) };
  if (SS !== undefined) return { SS };
  if (NS !== undefined) return { NS };
  if (BS !== undefined) return { BS: BS.map(bytesOf) };
  throw new TypeError("a stream image holds a value of an unknown type");
}

const bytesOf = (base64: string): Uint8Array => Buffer.from(base64, "base64");
