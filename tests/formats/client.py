"""Confluent's client, as a producer and a consumer of framed Avro records.

    client.py produce BROKERS REGISTRY TOPIC KEY_SCHEMA VALUE_SCHEMA   one {"key": …, "value": …} a line on standard input
    client.py consume BROKERS REGISTRY TOPIC RECORDS                   prints one value a line, as JSON
    client.py register REGISTRY SUBJECT SCHEMA                         prints the schema's number

KEY_SCHEMA may be `text`: keys are then bytes as they are.
"""

import json
import sys
import time

from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext


def produce(brokers, registry, topic, key_schema, value_schema):
    client = SchemaRegistryClient({"url": registry})
    key = None if key_schema == "text" else AvroSerializer(client, open(key_schema).read())
    value = AvroSerializer(client, open(value_schema).read())
    producer = Producer({"bootstrap.servers": brokers})
    for line in sys.stdin:
        record = json.loads(line)
        raw = record["key"]
        if key is not None:
            raw = key(raw, SerializationContext(topic, MessageField.KEY))
        producer.produce(
            topic,
            key=raw,
            value=value(record["value"], SerializationContext(topic, MessageField.VALUE)),
            partition=0,
        )
        producer.poll(0)
    assert producer.flush(30) == 0


def consume(brokers, registry, topic, records):
    client = SchemaRegistryClient({"url": registry})
    value = AvroDeserializer(client)
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": f"reader-{time.time_ns()}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    read, deadline = 0, time.time() + 60
    while read < records and time.time() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        assert message.error() is None, message.error()
        assert message.key() is None and message.headers() is None
        print(json.dumps(value(message.value(), SerializationContext(topic, MessageField.VALUE))))
        read += 1
    consumer.close()


def register(registry, subject, schema):
    print(SchemaRegistryClient({"url": registry}).register_schema(subject, Schema(open(schema).read(), "AVRO")))


command, arguments = sys.argv[1], sys.argv[2:]
if command == "produce":
    produce(*arguments)
elif command == "consume":
    consume(*arguments[:3], int(arguments[3]))
else:
    register(*arguments)
