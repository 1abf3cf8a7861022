/** Tests which messages the queues of imports and exports accept, and which jobs the messages refer to. */
import { expect, test } from "vitest";
import { oneJob } from "#shared/aws/sqs.ts";
import { ImportMessage } from "#shared/jobs/import/job.ts";

const uploaded = (...keys: string[]) => ({
  Records: keys.map((key) => ({ eventSource: "aws:s3", eventName: "ObjectCreated:Put", s3: { object: { key } } })),
});

test("a queue accepts only messages of its own kind", () => {
  const place = { companyId: 7, id: 9 };
  expect(ImportMessage.parse({ kind: "import", ...place })).toEqual([place]);
  expect(oneJob("export").parse({ kind: "export", ...place })).toEqual([place]);
  expect(ImportMessage.safeParse({ kind: "export", ...place }).success).toBe(false);
  expect(oneJob("export").safeParse({ kind: "import", ...place }).success).toBe(false);
  expect(oneJob("export").safeParse(uploaded("uploads/7/9.csv")).success).toBe(false);
});

test("a notification of S3 names imports by form-encoded keys, and other keys name no import", () => {
  expect(ImportMessage.parse(uploaded("uploads/7/9.csv", "uploads%2F7%2F10.csv"))).toEqual([
    { companyId: 7, id: 9 },
    { companyId: 7, id: 10 },
  ]);
  expect(ImportMessage.parse(uploaded("uploads/7/my+file.csv", "exports/7/9.csv"))).toEqual([]);
});

test("the test event of S3 names no import, and any other message is invalid", () => {
  expect(ImportMessage.parse({ Service: "Amazon S3", Event: "s3:TestEvent", Bucket: "b" })).toEqual([]);
  for (const other of [{}, { Event: "s3:Other" }, { kind: "import", companyId: "7", id: 9 }]) {
    expect(ImportMessage.safeParse(other).success).toBe(false);
  }
});
