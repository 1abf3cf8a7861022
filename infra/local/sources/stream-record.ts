/** Converts stream records to the form in which Lambda passes them: binary values are base64, and times are seconds since 1970. */
import type { AttributeValue, _Record as SdkRecord } from "@aws-sdk/client-dynamodb-streams";
import type { AttributeValue as StreamValue } from "aws-lambda";

export type StreamRecord = ReturnType<typeof lambdaRecord>;

export function lambdaRecord({ dynamodb = {}, ...record }: SdkRecord) {
  const { Keys, OldImage, NewImage, SequenceNumber, ApproximateCreationDateTime: time, ...rest } = dynamodb;
  if (SequenceNumber === undefined || time === undefined) throw new Error("a stream record has no position or no time");
  return {
    ...record,
    dynamodb: {
      ...rest,
      ApproximateCreationDateTime: time.getTime() / 1_000,
      SequenceNumber,
      ...(Keys !== undefined && { Keys: imageOf(Keys) }),
      ...(OldImage !== undefined && { OldImage: imageOf(OldImage) }),
      ...(NewImage !== undefined && { NewImage: imageOf(NewImage) }),
    },
  };
}

/** Converts an image, which has the attributes of a row before or after a change. */
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
